/** Fragments: what the registers of a warp hold as matrices, each element in the color of the lane that has it. */

import { fill, h, tipsIn } from "lab/dom.js";
import { float, number, sizeOf } from "lab/format.js";
import { Matrix } from "lab/matrix.js";
import { listen } from "lab/palette.js";
import { Panel } from "lab/panel.js";

const SHEETS = 6; // that stay laid out

/** @typedef {{ element: HTMLElement, note: HTMLElement, matrices: Matrix[][] }} Sheet the matrices of an instruction, each of one or more copies */

export class Fragments extends Panel {
  title = "Fragments";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    super(run, state);
    this.known = run.info.layouts;
    /** @type {Map<string, Sheet>} by the form of their matrices, those shown last at the end */
    this.sheets = new Map();
    /** @type {WeakMap<Element, Matrix>} */
    this.shown = new WeakMap();
    tipsIn(this.body, (_, event) => this.tip(event));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.seen = new IntersectionObserver((changes) => {
      if (!this.body.isConnected) return;
      for (const { target, isIntersecting } of changes) if (!target.closest(".unseen")) this.shown.get(target)?.see(isIntersecting);
    }, { root: this.body, rootMargin: "200px" });
    listen(() => { for (const sheet of this.sheets.values()) for (const one of sheet.matrices.flat()) one.restyle(!sheet.element.classList.contains("unseen")); });
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const [place] = await Promise.all([run.place(now.warp, now.position), run.registers(now.warp, now.position)]); // in one request, if they are needed
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
    const given = matrices ?? [];
    const find = given.map((one) => this.finder(one, one.result ? after : before));
    const form = given.map((one) => `${one.operand}/${one.title}/${one.layout}`).join();
    const known = this.sheets.get(form);
    const sheet = known ?? (matrices ? this.sheet(given) : this.nothing());
    for (const one of this.sheets.values()) one.element.classList.toggle("unseen", one !== sheet);
    sheet.matrices.forEach((copies, index) => copies.forEach((one) => one.show(find[index], now.lane)));
    if (matrices) this.remark(sheet.note, place.instruction);
    this.sheets.delete(form);
    this.sheets.set(form, sheet);
    if (known) return;
    if (this.sheets.size > SHEETS) this.forget(/** @type {string} */ (this.sheets.keys().next().value));
    fill(this.body, [...this.sheets.values()].map((one) => one.element));
  }

  /** @param {string} form */
  forget(form) {
    for (const one of this.sheets.get(form)?.matrices.flat() ?? []) this.seen.unobserve(one.element);
    this.sheets.delete(form);
  }

  /**
   * @param {HTMLElement} note
   * @param {number} instruction
   */
  remark(note, instruction) {
    const text = this.run.texts[instruction];
    fill(note, "Line ", String(this.run.instructions[instruction].line), ": ", h("code", {}, text.split(" ")[text.startsWith("@") ? 1 : 0]),
      ". An element has the color of its lane; D is as the instruction leaves it. Click an element for its origin; arrow keys and Enter do the same.");
  }

  /** Where there is no matrix. @returns {Sheet} */
  nothing() {
    const lines = Object.keys(this.known.instructions).map((one) => this.run.instructions[Number(one)].line);
    const note = offer("The next instruction holds no matrix in registers. These do:", lines, this.run, this.state);
    return { element: h("div", { class: "sheet" }, note), note, matrices: [] };
  }

  /**
   * @param {any[]} given
   * @returns {Sheet}
   */
  sheet(given) {
    const note = h("p", { class: "note" });
    const matrices = given.map((one) => {
      const layout = this.known.layouts[one.layout];
      return Array.from({ length: layout.copies }, (_, copy) => new Matrix(layout, copy));
    });
    let top = 0;
    for (const copies of matrices) {
      for (const one of copies) {
        one.isSeen = top < window.innerHeight; // until the browser says it
        this.shown.set(one.element, one);
        this.seen.observe(one.element);
      }
      top += copies[0].height;
    }
    const sections = given.map((one, index) => h("section", { class: "fragment", "data-operand": one.operand },
      h("h3", {}, one.title, h("span", { class: "note", "aria-live": "polite" })), h("div", { class: "matrices" }, matrices[index].map((copy) => copy.element))));
    return { element: h("div", { class: "sheet" }, note, sections), note, matrices };
  }

  /**
   * Finds elements of a matrix: the lane and the register that have one, and its value.
   * @param {any} one
   * @param {Map<string, import("lab/register.js").Register>} registers
   * @returns {(place: number) => import("lab/matrix.js").Found}
   */
  finder(one, registers) {
    const { bits } = this.known.layouts[one.layout];
    const type = typeIn(one.title, bits);
    return (place) => {
      const lane = place >> 5 & 31;
      const name = one.registers[Math.floor((place >> 10) / Math.max(bits >> 5, 1))] ?? "";
      const register = registers.get(name);
      const value = register && register.lanes >>> lane & 1 ? element(register, lane, place & 31, type, bits) : null;
      return { lane, name, register, value, bits: bits < 32 ? `, bits ${place & 31} to ${(place & 31) + bits - 1}` : "" };
    };
  }

  /** The matrix that an event is in. @param {Event} event */
  matrixOf(event) {
    const around = event.target instanceof Element ? event.target.closest(".matrix") : null;
    return around ? this.shown.get(around) ?? null : null;
  }

  /** What is said of an element. @param {Event} event */
  tip(event) {
    const found = this.matrixOf(event)?.at(event);
    if (!found) return "";
    const { row, column, lane, name, value, bits } = found;
    return `[${row}, ${column}] = ${typeof value === "number" ? float(value) : value ?? "–"}\nlane ${lane}, ${name}${bits}`;
  }

  /** Arrow keys choose an element of a matrix, which is then said beside its title; Enter shows the origin of it. @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter") this.clicked(event);
    if (!this.matrixOf(event)?.choose(event.key)) return;
    event.stopPropagation();
    event.preventDefault();
    const section = event.target instanceof Element ? event.target.closest(".fragment") : null;
    const said = section?.querySelector("h3 .note");
    if (said) said.textContent = this.tip(event).replace("\n", ", ");
  }

  /** Show the origin of an element. @param {Event} event */
  clicked(event) {
    const found = this.matrixOf(event)?.at(event);
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
