/** Fragments: what the registers of a warp hold as matrices, each element in the color of the lane that has it. */

import { fill, h, tipsIn } from "lab/dom.js";
import { brief, float, number, sizeOf } from "lab/format.js";
import { Panel } from "lab/panel.js";

const CELLS = 16 * 256; // of a matrix that are shown

export class Fragments extends Panel {
  title = "Fragments";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    super(run, state);
    this.known = run.info.layouts;
    /** @type {WeakMap<Element, (place: number) => { lane: number, name: string, register: any, value: string | number | null, bits: string }>} by the matrix that is shown */
    this.shown = new WeakMap();
    tipsIn(this.body, (target) => this.tip(target));
    this.body.addEventListener("click", (event) => this.clicked(event));
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const place = await run.place(now.warp, now.position);
    const matrices = this.known.instructions[place.instruction];
    if (!matrices) return { place, matrices: null, before: new Map(), after: new Map() };
    const of = run.instructions[place.instruction].function;
    const [before, after] = await Promise.all([run.registers(now.warp, place.step, of), this.after(now.warp, place.step, of)]);
    return { place, matrices, before, after };
  }

  /**
   * What the instruction of a step leaves: results come when it is complete, which may be later.
   * @param {number} warp
   * @param {number} step
   * @param {number} of
   */
  async after(warp, step, of) {
    const next = await this.run.place(warp, step + 1);
    return this.run.registers(warp, Math.max(step + 1, next.step), of);
  }

  /**
   * @param {{ place: import("lab/run.js").Place, matrices: any[] | null, before: Map<string, any>, after: Map<string, any> }} found
   * @param {import("lab/state.js").Looked} now
   */
  show({ place, matrices, before, after }, now) {
    if (!matrices) {
      const lines = Object.keys(this.known.instructions).map((one) => this.run.instructions[Number(one)].line);
      fill(this.body, offer("The next instruction holds no matrix in registers. These do:", lines, this.run, this.state));
      return;
    }
    const text = this.run.texts[place.instruction];
    fill(this.body,
      h("p", { class: "note" }, "Line ", String(this.run.instructions[place.instruction].line), ": ", h("code", {}, text.split(" ")[text.startsWith("@") ? 1 : 0]),
        ". An element has the color of its lane; D is as the instruction leaves it. Click an element for its origin."),
      matrices.map((one) => this.matrix(one, one.result ? after : before, now)));
  }

  /**
   * @param {any} one
   * @param {Map<string, import("lab/register.js").Register>} registers
   * @param {import("lab/state.js").Looked} now
   */
  matrix(one, registers, now) {
    const layout = this.known.layouts[one.layout];
    const type = typeIn(one.title, layout.bits);
    const rows = layout.transposed ? layout.columns : layout.rows;
    const columns = layout.transposed ? layout.rows : layout.columns;
    const tables = [];
    for (let copy = 0; copy < layout.copies; copy++) {
      let cells = "<b></b>";
      for (let column = 0; column < columns; column++) cells += `<b>${column}</b>`;
      for (let row = 0, count = 0; row < rows && count < CELLS; row++) {
        cells += `<b>${row}</b>`;
        for (let column = 0; column < columns; column++, count++) {
          const [r, c] = layout.transposed ? [column, row] : [row, column];
          const place = layout.positions[(copy * layout.rows + r) * layout.columns + c];
          cells += this.cell(this.elementAt(layout, place, one, registers, type), place, { row, column, now });
        }
      }
      const table = h("div", { class: "matrix", style: `--columns:${columns}` });
      table.innerHTML = cells; // numbers only: many elements at once
      this.shown.set(table, (place) => this.elementAt(layout, place, one, registers, type));
      tables.push(table);
    }
    return h("section", { class: "fragment", "data-operand": one.operand }, h("h3", {}, one.title), h("div", { class: "matrices" }, tables));
  }

  /**
   * An element of a matrix: the lane and the register that have it, and its value.
   * @param {any} layout
   * @param {number} place
   * @param {any} one
   * @param {Map<string, import("lab/register.js").Register>} registers
   * @param {string} type
   */
  elementAt(layout, place, one, registers, type) {
    const lane = place >> 5 & 31;
    const name = one.registers[Math.floor((place >> 10) / Math.max(layout.bits >> 5, 1))] ?? "";
    const register = registers.get(name);
    const value = register && register.lanes >>> lane & 1 ? element(register, lane, place & 31, type, layout.bits) : null;
    return { lane, name, register, value, bits: layout.bits < 32 ? `, bits ${place & 31} to ${(place & 31) + layout.bits - 1}` : "" };
  }

  /**
   * @param {{ lane: number, value: string | number | null }} found
   * @param {number} place
   * @param {{ row: number, column: number, now: import("lab/state.js").Looked }} at
   */
  cell({ lane, value }, place, { row, column, now }) {
    const shown = typeof value === "number" ? brief(value) : value ?? "–";
    return `<button type="button" class="element ${lane === now.lane ? "own" : ""}" style="--hue:${(lane * 137.5) % 360}" data-lane="${lane}" data-at="${row} ${column} ${place}">${shown}</button>`;
  }

  /** The element of a matrix that a target is, and where it is. @param {Element | null} target */
  elementOf(target) {
    const at = target?.getAttribute("data-at")?.split(" ").map(Number);
    const find = target?.parentElement && this.shown.get(target.parentElement);
    return at && find ? { row: at[0], column: at[1], ...find(at[2]) } : null;
  }

  /** What is said of an element. @param {Element} target */
  tip(target) {
    const found = this.elementOf(target);
    if (!found) return "";
    const { row, column, lane, name, value, bits } = found;
    return `[${row}, ${column}] = ${typeof value === "number" ? float(value) : value ?? "–"}\nlane ${lane}, ${name}${bits}`;
  }

  /** Show the origin of an element. @param {Event} event */
  clicked(event) {
    const found = this.elementOf(event.target instanceof Element ? event.target : null);
    if (!found) return;
    const { lane, name, register } = found;
    this.state.set({ lane, tab: "origin", subject: { origin: `origin/register/${this.state.now.warp}/${lane}/${name}/${(register?.after(lane) ?? -1) + 1}` } });
  }
}

/**
 * The type of elements that a title names.
 * @param {string} title
 * @param {number} bits
 */
function typeIn(title, bits) {
  const found = title.match(/\b(f16|bf16|tf32|f32|f64|e4m3|e5m2|s8|u8|s32)\b/);
  return found ? found[1] : `b${Math.max(bits, 8)}`;
}

/**
 * @param {import("lab/register.js").Register} register
 * @param {number} lane
 * @param {number} bit
 * @param {string} type
 * @param {number} bits
 */
function element(register, lane, bit, type, bits) {
  const at = lane * register.size + (bit >> 3);
  if (bits < 8) return String(register.data[at] >> (bit & 7) & ((1 << bits) - 1));
  if (sizeOf(type) * 8 > register.size * 8) return "?";
  const value = number(type, register.view, at);
  return typeof value === "number" && /^(f|bf|tf|e)/.test(type) ? value : String(value);
}

/**
 * Lines to go to where a view has something to show.
 * @param {string} text
 * @param {number[]} given
 * @param {import("lab/run.js").Run} run
 * @param {import("lab/state.js").State} state
 */
export function offer(text, given, run, state) {
  const lines = [...new Set(given)].filter((line) => run.info.counts[line]);
  return h("div", { class: "problem" }, h("p", {}, text), h("div", { class: "links" }, lines.slice(0, 60).map((line) => h("button", {
    type: "button", class: "link", "data-line": line, onclick: () => goTo(line, run, state),
  }, `line ${line}`))));
}

/**
 * The next time that the warp executes a line, or that any warp does.
 * @param {number} line
 * @param {import("lab/run.js").Run} run
 * @param {import("lab/state.js").State} state
 */
export async function goTo(line, run, state) {
  const { position, warp } = state.now;
  const found = await run.source.get(`line/${line}`);
  const own = found.steps.filter((/** @type {number} */ _, /** @type {number} */ index) => found.warps[index] === warp);
  const next = own.find((/** @type {number} */ step) => step >= position) ?? own[0];
  if (next !== undefined) state.set({ position: next });
  else if (found.steps.length) state.set({ position: found.steps[0], warp: found.warps[0] });
}
