/** Tensor memory: which instruction wrote which lanes and columns last, and what the next one accesses. */

import { fill, h } from "lab/dom.js";
import { grouped } from "lab/format.js";
import { Panel } from "lab/panel.js";

/** @typedef {{ step: number, kind: string, line: number, lane: number, lanes: number, column: number, columns: number, warp: number }} Use */

const WIDTH = 512;
const LANES = 128;

export class Tensor extends Panel {
  title = "Tensor";

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const [uses, place] = await Promise.all([run.source.get(`tensor/${run.blockOf(now.warp)}`), run.place(now.warp, now.position)]);
    return { uses, place };
  }

  /**
   * @param {{ uses: Use[], place: import("lab/run.js").Place }} found
   * @param {import("lab/state.js").Looked} now
   */
  show({ uses, place }, now) {
    const done = uses.filter((one) => one.step < now.position);
    const next = uses.filter((one) => one.step === place.step);
    const allocated = held(done);
    const last = new Map();
    for (const one of done) if (one.kind !== "allocates" && one.kind !== "frees" && one.kind !== "loads") last.set(`${one.lane}/${one.column}/${one.lanes}/${one.columns}`, one);
    const boxes = [
      ...allocated.map((one) => this.box(one, "held", `columns ${one.column} to ${one.column + one.columns - 1} are allocated`)),
      ...[...last.values()].map((one) => this.box(one, one.kind === "multiplies" ? "product" : "stored", this.sentence(one))),
      ...next.map((one) => this.box(one, "next", `next: ${this.sentence(one)}`)),
    ];
    fill(this.body,
      h("p", { class: "note" }, "128 lanes from top to bottom, 512 columns of 32 bits from left to right. Values are not recorded; a load shows them in registers. Modelled, not measured."),
      h("div", { class: "tensor-map", "aria-label": "Map of tensor memory" }, boxes, [0, 32, 64, 96].map((lane) => h("b", { style: `top:${(100 * lane) / LANES}%` }, `lane ${lane}`))),
      h("div", { class: "tensor-axis" }, [0, 128, 256, 384].map((column) => h("span", {}, column))),
      h("h3", {}, "Before this"),
      h("table", { class: "events" }, h("tbody", {}, done.slice(-12).reverse().map((one) => h("tr", {},
        h("td", { class: "num" }, h("button", { type: "button", class: "link", onclick: () => this.state.set({ position: one.step, warp: one.warp }) }, grouped(one.step))),
        h("td", {}, this.sentence(one)), h("td", { class: "note" }, `line ${one.line}`))))));
  }

  /**
   * @param {Use} one
   * @param {string} kind
   * @param {string} tip
   */
  box(one, kind, tip) {
    return h("i", {
      class: kind, "data-tip": tip, onclick: () => this.state.set({ position: one.step, warp: one.warp }),
      style: `left:${(100 * one.column) / WIDTH}%;width:${(100 * one.columns) / WIDTH}%;top:${(100 * one.lane) / LANES}%;height:${(100 * one.lanes) / LANES}%`,
    });
  }

  /** @param {Use} one */
  sentence(one) {
    const place = `columns ${one.column} to ${one.column + one.columns - 1}`;
    if (one.kind === "allocates" || one.kind === "frees") return `warp ${this.run.warpInBlock(one.warp)} ${one.kind} ${one.columns} columns from ${one.column}`;
    return `warp ${this.run.warpInBlock(one.warp)} ${one.kind}: lanes ${one.lane} to ${one.lane + one.lanes - 1}, ${place}`;
  }
}

/** What is allocated and not freed. @param {Use[]} done */
function held(done) {
  /** @type {Map<number, Use>} */
  const found = new Map();
  for (const one of done) {
    if (one.kind === "allocates") found.set(one.column, one);
    if (one.kind === "frees") found.delete(one.column);
  }
  return [...found.values()];
}
