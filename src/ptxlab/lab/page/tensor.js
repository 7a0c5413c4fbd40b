/** Tensor memory: what its words hold, which instruction wrote which lanes and columns last, and what the next one accesses. */

import { fill, h, Rows, tipsIn } from "lab/dom.js";
import { grouped, number, text } from "lab/format.js";
import { Panel } from "lab/panel.js";
import { select } from "lab/registers.js";
import { bytes } from "lab/source.js";

/** @typedef {{ step: number, kind: string, line: number, lane: number, lanes: number, column: number, columns: number, warp: number }} Use */
/** @typedef {{ column: number, columns: number, data: string, known: string, view?: DataView, bits?: Uint8Array }} Words */

const WIDTH = 512;
const LANES = 128;
const CELL = 74; // pixels
const AS = ["f32", "s32", "u32", "hex", "f16x2", "bf16x2", "e4m3x4", "ue8m0x4"];

export class Tensor extends Panel {
  title = "Tensor";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    super(run, state);
    this.as = "f32";
    /** @type {Words} */
    this.words = { column: 0, columns: 0, data: "", known: "" };
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { width: WIDTH, height: LANES, "aria-hidden": "true" }));
    this.boxes = h("div", { class: "tensor-boxes" });
    this.map = h("div", { class: "tensor-map", "aria-label": "Map of tensor memory" }, this.canvas, this.boxes,
      [0, 32, 64, 96].map((lane) => h("b", { style: `top:${(100 * lane) / LANES}%` }, `lane ${lane}`)));
    this.rows = new Rows(20, (index) => this.row(index), { class: "word-rows" }, (index) => this.sign(index));
    this.rows.resize(LANES);
    this.head = h("div", { class: "word-head" });
    this.about = h("p", { class: "note" });
    this.events = h("div");
    tipsIn(this.rows.element, (target) => this.tip(target));
    this.rows.element.addEventListener("click", (event) => this.clicked(event));
    this.map.addEventListener("click", (event) => this.pointed(event));
    document.addEventListener("theme", () => this.paint());
    fill(this.body, this.about, this.map, h("div", { class: "tensor-axis" }, [0, 128, 256, 384].map((column) => h("span", {}, column))),
      this.head, this.rows.element, this.events);
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const block = run.blockOf(now.warp);
    const [uses, place] = await Promise.all([/** @type {Promise<Use[]>} */ (run.source.get(`tensor/${block}`)), run.place(now.warp, now.position)]);
    const done = uses.filter((one) => one.step < now.position);
    const words = /** @type {Words} */ (await run.source.get(`words/${block}/${done.length ? done[done.length - 1].step : -1}`));
    words.view ??= new DataView(bytes(words.data).buffer);
    words.bits ??= bytes(words.known);
    return { uses, done, place, words };
  }

  /** @param {{ uses: Use[], done: Use[], place: import("lab/run.js").Place, words: Words }} found */
  show({ uses, done, place, words }) {
    this.words = words;
    const last = new Map();
    for (const one of done) if (one.kind !== "allocates" && one.kind !== "frees" && one.kind !== "loads") last.set(`${one.lane}/${one.column}/${one.lanes}/${one.columns}`, one);
    fill(this.about, words.columns
      ? "128 lanes from top to bottom, 512 columns of 32 bits from left to right; click for the words there. "
      : "128 lanes from top to bottom, 512 columns of 32 bits from left to right. No word is known here. ",
    "Partial sums that no load reads are computed again from what the MMA reads. Modelled, not measured.");
    fill(this.boxes,
      held(done).map((one) => this.box(one, "held", `columns ${one.column} to ${one.column + one.columns - 1} are allocated`)),
      [...last.values()].map((one) => this.box(one, one.kind === "multiplies" ? "product" : "stored", this.sentence(one))),
      uses.filter((one) => one.step === place.step).map((one) => this.box(one, "next", `next: ${this.sentence(one)}`)));
    this.arrange();
    fill(this.events, h("h3", {}, "Before this"),
      h("table", { class: "events" }, h("tbody", {}, done.slice(-12).reverse().map((one) => h("tr", {},
        h("td", { class: "num" }, h("button", { type: "button", class: "link", onclick: () => this.state.set({ position: one.step, warp: one.warp }) }, grouped(one.step))),
        h("td", {}, this.sentence(one)), h("td", { class: "note" }, `line ${one.line}`))))));
  }

  /** The words, by the type that is chosen. */
  arrange() {
    const { column, columns } = this.words;
    this.rows.element.hidden = this.head.hidden = !columns;
    if (this.wide !== `${column}/${columns}`) {
      this.wide = `${column}/${columns}`;
      this.rows.inner.style.width = `${60 + columns * CELL}px`;
    }
    fill(this.head, h("h3", {}, `Words: lanes and columns ${column} to ${column + columns - 1}`), h("span", { class: "space" }),
      h("label", {}, "as ", select(AS, this.as, (value) => { this.as = value; this.arrange(); })));
    this.rows.refresh();
    this.paint();
  }

  /** Known words as points, darker the larger they are. */
  paint() {
    const { column, columns } = this.words;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    context.clearRect(0, 0, WIDTH, LANES);
    const values = new Float64Array(LANES * columns);
    let most = 0;
    for (let at = 0; at < values.length; at++) {
      values[at] = this.isKnown(at) ? Math.abs(this.valueOf(at)) : NaN;
      if (Number.isFinite(values[at]) && values[at] > most) most = values[at];
    }
    if (!columns) return;
    const image = context.createImageData(columns, LANES);
    values.forEach((value, at) => {
      if (Number.isNaN(value)) return;
      image.data.set([37, 99, 168, 40 + Math.round(190 * (most ? Math.min(1, value / most) : 0))], 4 * at);
    });
    context.putImageData(image, column, 0);
  }

  /** @param {number} at */
  isKnown(at) {
    return ((this.words.bits?.[at >> 3] ?? 0) >> (at & 7)) & 1;
  }

  /** @param {number} at */
  valueOf(at) {
    const type = { hex: "u32", f16x2: "f16", bf16x2: "bf16", e4m3x4: "e4m3", ue8m0x4: "u8" }[this.as] ?? this.as;
    return Number(number(type, /** @type {DataView} */ (this.words.view), 4 * at));
  }

  /** What a row shows. @param {number} lane */
  sign(lane) {
    const { column, columns, view } = this.words;
    let found = `${this.as}|${column}`;
    for (let at = lane * columns; at < (lane + 1) * columns; at++) found += `|${this.isKnown(at) ? view?.getUint32(4 * at) : ""}`;
    return found;
  }

  /** @param {number} lane */
  row(lane) {
    const { columns, column, view } = this.words;
    const row = h("div", { class: "word-row" });
    const cells = Array.from({ length: columns }, (_, right) => {
      const at = lane * columns + right;
      const shown = this.isKnown(at) ? text(this.as, /** @type {DataView} */ (view), 4 * at, 4) : "";
      return `<i class="${shown ? "" : "unknown"}" data-column="${column + right}">${shown}</i>`;
    });
    row.innerHTML = `<b>${lane}</b>${cells.join("")}`; // numbers only: many elements at once
    row.dataset.lane = String(lane);
    return row;
  }

  /** @param {Element} target */
  tip(target) {
    const column = target.getAttribute("data-column");
    const lane = target.closest("[data-lane]")?.getAttribute("data-lane");
    return column ? `lane ${lane}, column ${column}${target.textContent ? `\n${this.as} ${target.textContent}` : "\nnot known"}` : "";
  }

  /** The origin of a word. @param {MouseEvent} event */
  clicked(event) {
    const cell = event.target instanceof Element ? event.target.closest("[data-column]") : null;
    if (!cell) return;
    const { position, warp } = this.state.now;
    const lane = cell.closest("[data-lane]")?.getAttribute("data-lane");
    this.state.set({ tab: "origin", subject: { origin: `origin/tensor/${this.run.blockOf(warp)}/${lane}/${cell.getAttribute("data-column")}/${position}` } });
  }

  /** Show the words at a place of the map. @param {MouseEvent} event */
  pointed(event) {
    const box = this.map.getBoundingClientRect();
    this.rows.show(Math.floor((LANES * (event.clientY - box.top)) / box.height));
    this.rows.element.scrollLeft = Math.max(0, ((WIDTH * (event.clientX - box.left)) / box.width - this.words.column) * CELL - 100);
  }

  /**
   * @param {Use} one
   * @param {string} kind
   * @param {string} tip
   */
  box(one, kind, tip) {
    return h("i", {
      class: kind, "data-tip": tip,
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
