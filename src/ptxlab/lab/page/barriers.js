/** Barriers: the phase of each, arrivals and bytes that it waits for, and who waits; rings of mbarriers as stages. */

import { fill, h } from "lab/dom.js";
import { grouped } from "lab/format.js";
import { Panel } from "lab/panel.js";

/** @typedef {{ name: string, address: number, mbarrier: boolean, state: number[], events: any[][], waits: number[][] }} Given */
/** @typedef {{ name: string, address: number, mbarrier: boolean, expected: number, missing: number, bytes: number, phase: number, waits: number[][], recent: any[][], most: number }} Barrier */

export class Barriers extends Panel {
  title = "Barriers";

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const block = run.blockOf(now.warp);
    const position = run.within(block, now.position);
    const given = await run.source.get(`barriers/${block}/${run.windowOf(position)}`);
    return given.map((/** @type {Given} */ one) => at(one, position));
  }

  /**
   * @param {Barrier[]} barriers
   * @param {import("lab/state.js").Looked} now
   */
  show(barriers, now) {
    if (!barriers.length) {
      fill(this.body, h("p", { class: "problem" }, "No barrier is used in this block."));
      return;
    }
    const ring = stages(barriers.filter((one) => one.mbarrier));
    const rest = barriers.filter((one) => !ring || !ring.members.has(one));
    fill(this.body,
      ring ? [h("h3", {}, `Ring of ${ring.rows.length} stages`), h("table", { class: "ring" },
        h("thead", {}, h("tr", {}, h("th", {}, "Stage"), ring.names.map((name) => h("th", {}, name)))),
        h("tbody", {}, ring.rows.map((row, index) => h("tr", {}, h("td", { class: "num" }, index), row.map((one) => h("td", {}, this.card(one, now)))))))] : null,
      rest.length ? [ring ? h("h3", {}, "Others") : null, h("div", { class: "barrier-list" }, rest.map((one) => h("div", { class: "barrier" }, h("strong", {}, one.name), this.card(one, now))))] : null,
      this.history(barriers));
  }

  /**
   * @param {Barrier} one
   * @param {import("lab/state.js").Looked} now
   */
  card(one, now) {
    if (one.phase < 0) return h("span", { class: "note" }, one.mbarrier ? "not initialized yet" : "not used yet");
    const arrived = one.mbarrier ? one.expected - one.missing : one.missing;
    const expected = one.mbarrier ? one.expected : one.expected || Math.max(arrived, 1);
    return h("div", { class: "barrier-state" },
      h("span", { class: `phase ${one.phase % 2 ? "odd" : ""}`, "data-tip": one.mbarrier ? `phases complete: ${one.phase}; a wait for parity ${(one.phase + 1) % 2} passes` : `complete ${one.phase} times` }, one.mbarrier ? `phase ${one.phase}` : `${one.phase}×`),
      meter("arrivals", arrived, expected, one.mbarrier ? `${arrived} of ${expected}` : `${arrived}`),
      one.most || one.bytes ? meter("bytes", Math.max(0, one.most - one.bytes), Math.max(one.most, 1), one.bytes ? `${grouped(one.bytes)} bytes pending` : "no bytes pending") : null,
      ...this.waiting(one, now));
  }

  /**
   * Who waits, and for what: warps that do it by the same line are together.
   * @param {Barrier} one
   * @param {import("lab/state.js").Looked} now
   */
  waiting(one, now) {
    /** @type {Map<string, number[]>} */
    const together = new Map();
    for (const [warp, , , line, parity] of one.waits) {
      const what = parity >= 0 ? `for parity ${parity}, line ${line}` : `line ${line}`;
      together.set(what, [...(together.get(what) ?? []), warp]);
    }
    return [...together].map(([what, warps]) => h("span", { class: "waiting" }, "waits: ",
      warps.map((warp) => h("button", { type: "button", class: `chip ${warp === now.warp ? "own" : ""}`, onclick: () => this.state.set({ warp }) }, `warp ${this.run.warpInBlock(warp)}`)),
      ` ${what}`));
  }

  /** The last events. @param {Barrier[]} barriers */
  history(barriers) {
    /** @type {Map<string, { one: Barrier, event: any[], count: number }>} */
    const together = new Map();
    for (const one of barriers) {
      for (const event of one.recent) {
        const warp = Math.floor((event[2] % this.run.info.threadsInBlock) / 32);
        const key = `${one.name}/${event[0]}/${event[1]}/${event[1] === "phase" ? "" : warp}`;
        const known = together.get(key);
        if (known) known.count++;
        else together.set(key, { one, event, count: 1 });
      }
    }
    const all = [...together.values()].sort((a, b) => b.event[0] - a.event[0]).slice(0, 14);
    if (!all.length) return null;
    return [h("h3", {}, "Before this"), h("table", { class: "events" }, h("tbody", {}, all.map(({ one, event: [step, word, thread, instruction, size], count }) => {
      const own = thread % this.run.info.threadsInBlock;
      return h("tr", {}, h("td", { class: "num" }, h("button", { type: "button", class: "link", onclick: () => this.state.set({ position: step }) }, grouped(step))),
        h("td", {}, h("code", {}, one.name)), h("td", {}, sentence(word, size)),
        h("td", { class: "note" }, word === "phase" ? "" : `warp ${own >> 5} ${count > 1 ? `${count} lanes` : `lane ${own & 31}`}, line ${this.run.instructions[instruction]?.line ?? ""}`));
    })))];
  }
}

/**
 * @param {string} word
 * @param {number} size
 */
function sentence(word, size) {
  return { initialized: `is initialized: ${size} arrivals a phase`, arrived: "arrival", expects: `expects ${grouped(size)} more bytes`, bytes: `${grouped(size)} bytes have landed`, phase: "the phase is complete", seen: "a wait is over" }[word] ?? word;
}

/**
 * @param {string} name
 * @param {number} value
 * @param {number} most
 * @param {string} text
 */
function meter(name, value, most, text) {
  return h("span", { class: `meter ${name}` }, h("i", { style: `width:${Math.min(100, (100 * value) / most)}%` }), h("span", {}, `${text}${name === "arrivals" ? " arrived" : ""}`));
}

/**
 * A barrier at a position.
 * @param {Given} given
 * @param {number} position
 * @returns {Barrier}
 */
function at(given, position) {
  let [expected, missing, bytes, phase] = given.state;
  let most = bytes;
  const recent = [];
  for (const event of given.events) {
    if (event[0] >= position) break;
    [expected, missing, bytes, phase] = event.slice(5);
    if (event[1] === "phase") most = 0;
    most = Math.max(most, bytes);
    if (event[1] !== "arrived" || given.mbarrier) recent.push(event);
  }
  const waits = given.waits.filter(([, from, until]) => from <= position && position <= until);
  return { name: given.name, address: given.address, mbarrier: given.mbarrier, expected, missing, bytes, phase, waits, recent: recent.slice(-512), most };
}

/**
 * Mbarriers that are stages of a ring: variables with as many of them each, one after the other.
 * @param {Barrier[]} barriers
 */
export function stages(barriers) {
  /** @type {Map<string, Barrier[]>} */
  const groups = new Map();
  for (const one of barriers) {
    const name = one.name.replace(/\+\d+$/, "");
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  for (const group of groups.values()) group.sort((one, other) => one.address - other.address);
  const columns = [...groups].filter(([, group]) => group.length > 1);
  if (!columns.length) return null;
  const count = Math.max(...columns.map(([, group]) => group.length));
  const ring = columns.filter(([, group]) => group.length === count);
  const rows = Array.from({ length: count }, (_, index) => ring.map(([, group]) => group[index]));
  return { names: ring.map(([name]) => name), rows, members: new Set(rows.flat()) };
}
