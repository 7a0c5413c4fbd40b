/** Ranks side by side: where the warps of each launch are at one time, and the flags by which they wait for each other. */

import { fill, h } from "lab/dom.js";
import { colored } from "lab/listing.js";
import { grouped } from "lab/format.js";
import { Panel } from "lab/panel.js";

const [MOST, ROWS, FLAGS, EVENTS] = [16, 8, 64, 14]; // that are shown

export class Ranks extends Panel {
  title = "Ranks";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   * @param {import("lab/node.js").Node} node
   */
  constructor(run, state, node) {
    super(run, state, "ranks");
    this.node = node;
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { node } = this;
    const { time } = node;
    const numbers = shown(node, now.launch);
    const places = await Promise.all(numbers.map(async (launch) => {
      const run = await node.run(launch);
      const position = node.positionAt(launch, time);
      const block = launch === node.launch ? run.blockOf(now.warp) : run.blocks[0]?.number ?? 0;
      return { launch, run, position, places: run.blocks.length ? await run.places(block, position) : [] };
    }));
    return { time, places };
  }

  /**
   * @param {{ time: number, places: { launch: number, run: import("lab/run.js").Run, position: number, places: import("lab/run.js").Place[] }[] }} found
   * @param {import("lab/state.js").Looked} now
   */
  show({ time, places }, now) {
    const { node } = this;
    const left = node.launches.length - places.length;
    const flags = node.flags.map((flag, number) => ({ number, flag, at: stateOf(flag, time) }));
    const used = flags.filter(({ at }) => at.writes || at.waits.length || at.started).slice(0, FLAGS);
    fill(this.body,
      h("p", { class: "note" }, `Time ${grouped(time)} of ${grouped(node.end)}, in warp steps of all launches: an order that the seed chooses.`),
      h("div", { class: "rank-list" }, places.map((one) => this.card(one, time, now))),
      left > 0 ? h("p", { class: "note" }, `${left} more launches are in the choice above.`) : null,
      h("h3", {}, "Flags"),
      used.length ? h("div", { class: "barrier-list" }, used.map(({ flag, at }) => this.flag(flag, at)))
        : h("p", { class: "note" }, node.flags.length ? "No flag is used yet." : "No launch waits for a word of global memory."),
      this.history(time));
  }

  /**
   * A launch: its warps, each with the line that it executes next.
   * @param {{ launch: number, run: import("lab/run.js").Run, position: number, places: import("lab/run.js").Place[] }} one
   * @param {number} time
   * @param {import("lab/state.js").Looked} now
   */
  card({ launch, run, position, places }, time, now) {
    const { node } = this;
    const about = node.launches[launch];
    const isOwn = launch === node.launch;
    const rows = this.rows(launch, run, places, time).map(({ first, last, at, what, ended, own }) => h("button", {
      type: "button", class: `rank-warp ${isOwn && own.includes(now.warp) ? "own" : ""} ${ended ? "ended" : ""}`,
      onclick: () => node.go(launch, time, own[0]),
    }, h("span", { class: "num" }, first === last ? `w${first}` : `w${first}–${last}`), h("span", { class: "num" }, at >= 0 ? run.instructions[at].line : ""),
    h("span", { class: "code" }, at >= 0 ? colored(run.texts[at] ?? "") : ""), what ? h("span", { class: "what" }, what) : null));
    return h("section", { class: `rank ${isOwn ? "own" : ""}`, "data-launch": launch },
      h("header", {}, h("button", { type: "button", class: "link", onclick: () => node.go(launch, time) }, h("b", {}, about.title)),
        about.isKernel && new Set(node.launches.map((each) => each.kernel)).size > 1 ? h("code", {}, about.kernel) : null,
        h("span", { class: "note" }, position === 0 ? "not started" : position >= about.steps ? (about.complete ? "ended" : "stopped") : `step ${grouped(position)} of ${grouped(about.steps)}`)),
      rows.slice(0, ROWS), rows.length > ROWS ? h("span", { class: "note" }, `and ${rows.length - ROWS} more`) : null);
  }

  /**
   * The warps of a block, those together that are next to each other and do the same.
   * @param {number} launch
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/run.js").Place[]} places
   * @param {number} time
   */
  rows(launch, run, places, time) {
    const { flags, launches } = this.node;
    /** @type {{ first: number, last: number, at: number, what: string, ended: boolean, own: number[] }[]} */
    const found = [];
    for (const place of places) {
      const at = place.instruction >= 0 ? place.instruction : place.instructionBefore;
      const waits = flags.filter((flag) => flag.waits.some(([by, warp, start, end]) => by === launch && warp === place.warp && start < time && time <= end));
      const what = place.ended ? (launches[launch].complete ? "has ended" : "no step is recorded after this") : waits.length ? `waits for ${waits.map((flag) => flag.name).join(", ")}` : "";
      const number = run.warpInBlock(place.warp);
      const last = found[found.length - 1];
      if (last && last.at === at && last.what === what) {
        last.last = number;
        last.own.push(place.warp);
      } else found.push({ first: number, last: number, at, what, ended: place.ended, own: [place.warp] });
    }
    return found;
  }

  /**
   * @param {import("lab/node.js").Flag} flag
   * @param {State} at
   */
  flag(flag, at) {
    const { node } = this;
    return h("div", { class: "barrier" }, h("strong", {}, flag.name), h("div", { class: "barrier-state" },
      h("span", { class: `phase ${at.writes % 2 ? "odd" : ""}`, "data-tip": `written ${at.writes} times` }, `= ${at.value}`),
      at.last ? h("span", { class: "note" }, "by ", this.link(at.last[2], at.last[0], at.last[3]), `, line ${at.last[4]}`) : h("span", { class: "note" }, "not written yet"),
      at.waits.map(([launch, warp, start, , line, , isOver]) => h("span", { class: `waiting ${isOver ? "" : "stuck"}` }, "waits: ",
        h("button", { type: "button", class: `chip ${launch === node.launch && warp === this.state.now.warp ? "own" : ""}`, onclick: () => node.go(launch, node.time, warp) },
          `${node.launches[launch].title} w${warp % node.launches[launch].warpsInBlock}`),
        ` line ${line}, since ${grouped(start)}${isOver ? "" : ": nothing writes what it waits for"}`))));
  }

  /**
   * @param {number} launch
   * @param {number} time
   * @param {number} warp
   */
  link(launch, time, warp) {
    return h("button", { type: "button", class: "link", onclick: () => this.node.go(launch, time, warp) }, this.node.launches[launch].title);
  }

  /** The last writes and observations. @param {number} time */
  history(time) {
    const { node } = this;
    /** @type {[number, string, HTMLElement, string][]} */
    const events = [];
    for (const flag of node.flags) {
      for (const [at, value, launch, warp, line] of lastOf(flag.writes, time, 0)) events.push([at, flag.name, this.link(launch, at, warp), ` writes ${value}, line ${line}`]);
    }
    for (const [, , , launch, warp, at, number] of lastOf(node.arrows, time, 5)) {
      events.push([at, node.flags[number].name, this.link(launch, at, warp), " sees it"]);
    }
    events.sort((one, other) => other[0] - one[0]);
    if (!events.length) return null;
    return [h("h3", {}, "Before this"), h("table", { class: "events" }, h("tbody", {}, events.slice(0, EVENTS).map(([at, name, link, text]) =>
      h("tr", {}, h("td", { class: "num" }, grouped(at)), h("td", {}, h("code", {}, name)), h("td", {}, link, text)))))];
  }
}

/** @typedef {{ value: number, writes: number, last: number[] | null, waits: any[][], started: boolean }} State */

/**
 * A flag at a time.
 * @param {import("lab/node.js").Flag} flag
 * @param {number} time
 * @returns {State}
 */
function stateOf(flag, time) {
  const before = flag.writes.filter(([at]) => at < time);
  const last = before[before.length - 1] ?? null;
  return {
    value: last ? last[1] : flag.initial, writes: before.length, last,
    waits: flag.waits.filter(([, , start, end]) => start < time && time <= end), started: flag.waits.some(([, , start]) => start < time),
  };
}

/**
 * The last of some rows before a time, which is one of their numbers.
 * @param {number[][]} rows
 * @param {number} time
 * @param {number} column
 */
function lastOf(rows, time, column) {
  return rows.filter((row) => row[column] < time).slice(-EVENTS);
}

/**
 * The launches that there is space for: the one that is shown, and kernels first.
 * @param {import("lab/node.js").Node} node
 * @param {number} own
 */
function shown(node, own) {
  const order = node.launches.map((_, number) => number).sort((one, other) => Number(node.launches[other].isKernel) - Number(node.launches[one].isKernel) || one - other);
  const chosen = order.slice(0, MOST);
  if (!chosen.includes(own)) chosen[MOST - 1] = own;
  return chosen.sort((one, other) => node.launches[one].rank - node.launches[other].rank || one - other);
}
