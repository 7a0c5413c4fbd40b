/** Bulk copies: where a box is in its tensor, which bytes of shared memory it fills, and when they arrive. */

import { fill, h, Rows, svg, tipped } from "lab/dom.js";
import { grouped } from "lab/format.js";
import { Panel } from "lab/panel.js";

/**
 * @typedef {{ number: number, step: number, landed: number, instruction: number, line: number, warp: number, lane: number, loads: boolean, array: number }} Listed
 * @typedef {{ name: string, step: number, bytes: number, phase: number, complete?: number, seen?: [number, number] | null }} Signal
 * @typedef {Listed & { owner: number, owners: number[], chunks: number, addresses: number[], filled: number[], unit: number, rows: string[],
 *   barrier: Signal | null, at?: number[], sizes: number[], box: number[], tiled: boolean, type: string, swizzle: string, interleave: string, each: number, first: number, fill: string }} Copy
 */

const HEIGHT = 20;
const LINE = 128;
const CHUNK = 16;
const [WIDE, HIGH] = [240, 110]; // pixels of the tensor

export class Copies extends Panel {
  title = "Copies";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    super(run, state, "copies");
    this.chosen = -1;
    this.chosenAt = -1;
    this.list = new Rows(24, (index) => this.listed(index), { class: "copy-list" }, (index) => this.sign(index));
    this.picture = h("div", { class: "copy" });
    this.times = h("ol", { class: "moments" });
    fill(this.body, this.list.element, this.picture);
    this.body.addEventListener("pointerover", (event) => this.point(event));
    /** @type {Listed[]} */
    this.copies = [];
    /** @type {Copy | null} */
    this.copy = null;
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const block = run.blockOf(now.warp);
    const [copies, place] = await Promise.all([/** @type {Promise<Listed[]>} */ (run.source.get(`copies/${block}`)), run.place(now.warp, now.position)]);
    if (now.position !== this.chosenAt) this.chosen = -1;
    const number = this.chosen >= 0 ? this.chosen : following(copies, place.step, now.position);
    return { copies, number, copy: number >= 0 ? await run.source.get(`copy/${block}/${number}`) : null };
  }

  /**
   * @param {{ copies: Listed[], number: number, copy: Copy | null }} found
   * @param {import("lab/state.js").Looked} now
   */
  show({ copies, number, copy }, now) {
    this.copies = copies;
    this.number = number;
    this.position = now.position;
    this.list.limit(Math.min(4, copies.length) * 24);
    this.list.resize(copies.length);
    this.list.show(copies.findIndex((one) => one.number === number));
    if (!copy) {
      fill(this.picture, h("p", { class: "problem" }, "No bulk copy is recorded in this block."));
      return;
    }
    if (copy !== this.copy) this.draw(copy);
    fill(this.times, this.moments(copy));
  }

  /** What a row of the list shows. @param {number} index */
  sign(index) {
    const one = this.copies[index];
    return `${one.number}|${one.number === this.number}|${stateOf(one, this.position ?? 0)}`;
  }

  /** @param {number} index */
  listed(index) {
    const one = this.copies[index];
    const name = this.run.info.arrays[one.array]?.name ?? "memory";
    const state = stateOf(one, this.position ?? 0);
    return h("button", {
      type: "button", class: `copy-row ${state.replace(" ", "-")} ${one.number === this.number ? "own" : ""}`, "data-copy": one.number,
      onclick: () => { this.chosen = one.number; this.chosenAt = this.state.now.position; this.update(this.state.now); },
    }, h("span", { class: "num" }, grouped(one.step)), h("span", {}, `line ${one.line}`), h("code", {}, one.loads ? `${name} → shared` : `shared → ${name}`),
    h("span", { class: "note" }, `warp ${this.run.warpInBlock(one.warp)}`), h("span", { class: "state" }, state));
  }

  /** @param {Copy} copy */
  draw(copy) {
    this.copy = copy;
    const outside = copy.landed >= 0 ? copy.filled.filter((one) => one < copy.unit).length : 0;
    this.byAddress = new Map(copy.addresses.map((address, index) => [address, index]));
    const known = copy.addresses.filter((one) => one >= 0);
    const [low, high] = known.length ? [Math.min(...known), Math.max(...known) + CHUNK] : [0, 0];
    this.start = Math.floor(low / LINE) * LINE;
    const box = new Rows(HEIGHT, (index) => this.boxRow(index), { class: "box-rows" });
    const shared = new Rows(HEIGHT, (index) => this.sharedRow(index), { class: "box-rows" });
    for (const one of [box, shared]) one.limit(Math.min(16, Math.max(copy.rows.length, 1)) * HEIGHT);
    fill(this.picture,
      h("h3", { id: "copy-title" }, this.name(copy)),
      h("p", { class: "note" }, this.about(copy), outside ? h("b", { class: "outside" }, ` ${grouped(outside)} of ${grouped(copy.filled.length)} chunks are outside of the tensor, wholly or in part: ${copy.loads ? `${copy.fill} arrive for them` : "nothing is written there"}.`) : null),
      h("div", { class: "copy-parts" },
        copy.sizes && copy.tiled ? h("section", {}, h("h4", {}, "In the tensor"), tensor(copy)) : null,
        h("section", { class: "when" }, h("h4", {}, "When"), this.times)),
      h("div", { class: "copy-parts" },
        h("section", {}, h("h4", {}, copy.sizes ? "The box: row and element" : "The bytes"), this.boxHead(copy), box.element),
        known.length ? h("section", {}, h("h4", {}, `In shared memory${copy.owners.length > 1 ? ` of blocks ${copy.owners.join(", ")}; here ${copy.owner}` : ""}: row and chunk of the box`), sharedHead(), shared.element) : null));
    box.resize(copy.rows.length);
    shared.resize(Math.ceil((high - this.start) / LINE));
  }

  /** `a[0:64, 64:128]`. @param {Copy} copy */
  name(copy) {
    const array = this.run.info.arrays[copy.array]?.name ?? "";
    if (!copy.sizes) return `${grouped(copy.addresses.filter((one) => one >= 0).length * CHUNK)} bytes of ${copy.rows[0] || array || "memory"}`;
    const at = copy.at ?? [];
    if (at.length !== copy.box.length || !copy.tiled) return `${copy.rows.length} rows of ${array}`;
    return `${array || "tensor"}[${at.map((start, index) => `${start}:${start + copy.box[index]}`).join(", ")}]`;
  }

  /** @param {Copy} copy */
  about(copy) {
    if (!copy.sizes) return copy.loads ? "A copy of bytes to shared memory." : "A copy of bytes from shared memory.";
    const kind = copy.tiled ? `A box of ${copy.box.join(" × ")}` : `${copy.rows.length} pixels of ${copy.box[copy.box.length - 1]}`;
    return `${kind} of a tensor of ${copy.sizes.join(" × ")} ${copy.type}, swizzle ${copy.swizzle}${copy.interleave === "none" ? "" : `, interleave ${copy.interleave}`}.`;
  }

  /** When it is issued, lands, and is seen. @param {Copy} copy */
  moments(copy) {
    const { run, barrier } = { run: this.run, barrier: copy.barrier };
    const chunks = copy.addresses.filter((one) => one >= 0).length;
    /** @type {Array<[number, number | null, string]>} the step, the warp to show, and what happens */
    const found = [[copy.step, copy.warp, `warp ${run.warpInBlock(copy.warp)} lane ${copy.lane} issues it, line ${copy.line}`]];
    const counts = barrier ? ` and count on ${barrier.name}, phase ${barrier.phase}` : "";
    if (copy.landed >= 0) found.push([copy.landed + 1, null, `${grouped(chunks * CHUNK)} bytes ${copy.loads ? "have landed" : "are written"}${counts}`]);
    if (barrier?.complete !== undefined) found.push([barrier.complete + 1, null, `phase ${barrier.phase} of ${barrier.name} is complete`]);
    if (barrier?.seen) found.push([barrier.seen[1], barrier.seen[0], `warp ${run.warpInBlock(barrier.seen[0])} is the first to see it`]);
    if (copy.landed < 0) found.push([run.count, null, "its bytes never arrive in this recording"]);
    return found.map(([step, warp, text]) => h("li", { class: step <= this.state.now.position ? "done" : "" },
      h("button", { type: "button", class: "link", onclick: () => this.go(copy, step, warp) }, grouped(step)), ` ${text}`));
  }

  /**
   * @param {Copy} copy
   * @param {number} step
   * @param {number | null} warp
   */
  go(copy, step, warp) {
    this.chosen = copy.number;
    this.chosenAt = step;
    this.state.set({ position: step, ...(warp === null ? {} : { warp }) });
  }

  /** The elements of each chunk. @param {Copy} copy */
  boxHead(copy) {
    const cells = Array.from({ length: copy.chunks }, (_, chunk) => h("span", {}, copy.sizes ? copy.first + chunk * copy.each : `+${chunk * CHUNK}`));
    return h("div", { class: "box-row head", style: `--chunks:${copy.chunks}` }, h("b", {}), cells);
  }

  /** @param {number} row */
  boxRow(row) {
    const copy = /** @type {Copy} */ (this.copy);
    const cells = Array.from({ length: copy.chunks }, (_, chunk) => this.cell(copy, row * copy.chunks + chunk, ""));
    return h("div", { class: "box-row", style: `--chunks:${copy.chunks}` }, h("b", {}, copy.rows[row]), cells);
  }

  /** @param {number} line of 128 bytes */
  sharedRow(line) {
    const copy = /** @type {Copy} */ (this.copy);
    const address = (this.start ?? 0) + line * LINE;
    const cells = [];
    for (let at = address; at < address + LINE; at += CHUNK) {
      const index = this.byAddress?.get(at);
      cells.push(index === undefined ? h("i", { class: "none" }) : this.cell(copy, index, `${Math.floor(index / copy.chunks)}.${index % copy.chunks}`));
    }
    return h("div", { class: "box-row", style: "--chunks:8" }, h("b", {}, grouped(address)), cells);
  }

  /**
   * A chunk of the box, in the color of its place in the row.
   * @param {Copy} copy
   * @param {number} index
   * @param {string} text
   */
  cell(copy, index, text) {
    const chunk = index % copy.chunks;
    const state = copy.landed < 0 ? "pending" : copy.filled[index] >= copy.unit ? "" : copy.filled[index] ? "partly" : "zero";
    return tipped(h("i", { class: state, style: `--hue:${(chunk * 47) % 360}`, "data-chunk": index, onclick: () => this.origin(copy, index) }, text), () => this.tip(copy, index));
  }

  /**
   * @param {Copy} copy
   * @param {number} index
   */
  tip(copy, index) {
    const [row, chunk] = [Math.floor(index / copy.chunks), index % copy.chunks];
    const address = copy.addresses[index];
    const first = copy.first + chunk * copy.each;
    return [copy.sizes ? `row ${copy.rows[row]}, elements ${first} to ${first + copy.each - 1}` : `bytes ${index * CHUNK} to ${index * CHUNK + 15}`,
      address >= 0 ? `shared memory, byte ${grouped(address)}, banks ${(address / 4) % 32} to ${(address / 4) % 32 + 3}` : "",
      copy.landed < 0 ? "it has not arrived" : copy.filled[index] >= copy.unit ? "" : copy.filled[index] ? `${copy.filled[index]} bytes of it are in the tensor` : "outside of the tensor"].filter(Boolean).join("\n");
  }

  /**
   * @param {Copy} copy
   * @param {number} index
   */
  origin(copy, index) {
    if (copy.addresses[index] < 0) return;
    const at = Math.max(this.state.now.position, copy.landed + 1);
    this.state.set({ tab: "origin", subject: { origin: `origin/memory/shared/${copy.owner}/${copy.addresses[index]}/4/${at}` } });
  }

  /** The same chunk in both pictures. @param {Event} event */
  point(event) {
    const over = event.target instanceof Element ? event.target.closest("[data-chunk]")?.getAttribute("data-chunk") : null;
    for (const one of this.body.querySelectorAll(".hot")) one.classList.remove("hot");
    if (over) for (const one of this.body.querySelectorAll(`[data-chunk="${over}"]`)) one.classList.add("hot");
  }
}

/**
 * The copy that goes with a position: of the next instruction, else the last that was issued before, else the first.
 * @param {Listed[]} copies
 * @param {number} step
 * @param {number} position
 */
function following(copies, step, position) {
  const next = copies.find((one) => one.step === step);
  const before = copies.filter((one) => one.step < position);
  return (next ?? before[before.length - 1] ?? copies[0])?.number ?? -1;
}

/**
 * @param {Listed} one
 * @param {number} position
 */
function stateOf(one, position) {
  return position <= one.step ? "not issued" : one.landed < 0 || position <= one.landed ? "in flight" : one.loads ? "landed" : "written";
}

function sharedHead() {
  return h("div", { class: "box-row head", style: "--chunks:8" }, h("b", {}), Array.from({ length: 8 }, (_, chunk) => h("span", {}, `+${chunk * CHUNK}`)));
}

/**
 * The two innermost dimensions of the tensor, and the box in them.
 * @param {Copy} copy
 */
function tensor(copy) {
  const rank = copy.sizes.length;
  const [rows, columns] = rank > 1 ? copy.sizes.slice(-2) : [1, copy.sizes[0]];
  const at = copy.at ?? [];
  const gathers = at.length > rank;
  const x = at[at.length - 1];
  const boxes = gathers ? copy.rows.map((row) => [x, Number(row), copy.box[rank - 1], 1]) : [[x, rank > 1 ? at[rank - 2] : 0, copy.box[rank - 1], rank > 1 ? copy.box[rank - 2] : 1]];
  const [left, top] = [Math.min(0, ...boxes.map((one) => one[0])), Math.min(0, ...boxes.map((one) => one[1]))];
  const [right, bottom] = [Math.max(columns, ...boxes.map((one) => one[0] + one[2])), Math.max(rows, ...boxes.map((one) => one[1] + one[3]))];
  const [sx, sy] = [WIDE / (right - left), HIGH / (bottom - top)];
  const even = Math.min(sx, sy);
  const [kx, ky] = [Math.min(sx, even * 4), Math.min(sy, even * 4)]; // a long tensor is not drawn as a line
  const box = (/** @type {string} */ name, /** @type {number[]} */ [a, b, w, t]) => svg("rect", { class: name, x: (a - left) * kx, y: (b - top) * ky, width: Math.max(2, w * kx), height: Math.max(2, t * ky) });
  const rest = !gathers && rank > 2 ? h("p", { class: "note" }, `at ${at.slice(0, -2).join(", ")} of the dimensions before`) : null;
  return h("div", {},
    svg("svg", { class: "tensor-box", width: (right - left) * kx + 2, height: (bottom - top) * ky + 2, viewBox: `-1 -1 ${(right - left) * kx + 2} ${(bottom - top) * ky + 2}`, role: "img", "aria-label": "The box in the tensor" },
      box("whole", [0, 0, columns, rows]), ...boxes.map((one) => box("box", one))),
    h("p", { class: "note" }, `${grouped(rows)} × ${grouped(columns)}`), rest);
}
