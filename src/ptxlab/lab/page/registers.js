/** Registers of the warp: the value of the lane that is chosen, and all lanes of a register that is opened. */

import { choice, fill, h, Rows, setText } from "lab/dom.js";
import { lanesOf, text } from "lab/format.js";
import { listen } from "lab/palette.js";
import { latest } from "lab/state.js";
import { Strips } from "lab/strips.js";

const HEIGHT = 26;
/** @type {Record<number, string[]>} what a register of so many bytes can be shown as */
const SHOWN_AS = { 2: ["f16", "bf16", "s16", "u16", "hex"], 4: ["f32", "s32", "u32", "f16x2", "bf16x2", "hex"], 8: ["f64", "s64", "u64", "hex"] };

export class Registers {
  title = "Registers";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    this.run = run;
    this.state = state;
    /** @type {Map<string, string>} */
    this.types = new Map();
    this.opened = "";
    this.filter = "";
    this.only = "all";
    /** @type {Array<import("lab/register.js").Register>} */
    this.list = [];
    this.rows = new Rows(HEIGHT, (index, old) => this.row(index, old), { class: "register-rows" }, (index) => this.sign(index));
    this.strips = new Strips(HEIGHT, (index) => this.strip(index));
    this.rows.inner.append(this.strips.element);
    this.rows.drew = (first, past) => this.strips.show(first, past);
    this.rows.element.addEventListener("click", (event) => this.clicked(event));
    this.rows.element.addEventListener("keydown", (event) => { if (event.key === "Enter") this.clicked(event); });
    this.search = /** @type {HTMLInputElement} */ (h("input", {
      type: "search", placeholder: "Filter", "aria-label": "Filter registers",
      oninput: () => { this.filter = this.search.value; this.arrange(); },
    }));
    this.laneInput = /** @type {HTMLInputElement} */ (h("input", {
      type: "number", min: 0, max: 31, value: state.now.lane, id: "lane", "aria-label": "Lane",
      onchange: () => this.state.set({ lane: Math.max(0, Math.min(31, Number(this.laneInput.value) || 0)) }),
    }));
    this.head = h("div", { class: "tools" });
    this.drawHead();
    this.restyled = 0;
    listen(() => { this.restyled++; this.rows.refresh(); });
    this.lanes = h("div", { class: "lanes-of", id: "lanes" });
    this.none = h("p", { class: "problem", hidden: true });
    this.element = h("div", { class: "view" }, this.head, this.lanes, this.none, this.rows.element);
    this.update = latest(async (now) => {
      const [registers, place] = await Promise.all([run.registers(now.warp, now.position), run.place(now.warp, now.position)]);
      return { registers, place };
    }, (found) => this.show(found), (wrong) => fill(this.lanes, h("p", { class: "problem" }, wrong.message)));
  }

  /** Make rows, so that the first registers are shown fast. */
  prepare() {
    return this.rows.prepare(emptyRow);
  }

  /** @param {{ registers: Map<string, import("lab/register.js").Register>, place: import("lab/run.js").Place }} found */
  show({ registers, place }) {
    this.registers = registers;
    this.place = place;
    this.active = place.active;
    const next = place.instruction >= 0 ? this.run.instructions[place.instruction] : null;
    this.reads = new Set(next?.reads ?? []);
    this.writes = new Set(next?.writes ?? []);
    const before = place.before;
    this.fresh = new Set([...registers.values()].filter((one) => before >= 0 && one.isFrom(before)).map((one) => one.name));
    this.arrange();
  }

  arrange() {
    const wanted = this.filter.trim().toLowerCase();
    const rank = (/** @type {string} */ name) => (this.reads?.has(name) ? 0 : this.writes?.has(name) ? 1 : this.fresh?.has(name) ? 2 : 3);
    this.list = [...(this.registers?.values() ?? [])].filter((one) =>
      (!wanted || one.name.toLowerCase().includes(wanted)) && (this.only === "all" || rank(one.name) < 3));
    this.list.sort((one, other) => (this.only === "all" ? 0 : rank(one.name) - rank(other.name)) || compare(one.name, other.name));
    const lane = String(this.state.now.lane);
    if (this.laneInput.value !== lane) this.laneInput.value = lane;
    this.rows.resize(this.list.length);
    this.drawLanes();
    this.none.hidden = this.list.length > 0;
    if (this.none.hidden) return;
    this.none.textContent = this.registers?.size ? "No register is of this kind." : `Here no register is written yet; → lets ${this.run.nameOf(this.state.now.warp)} execute an instruction.`;
  }

  drawHead() {
    fill(this.head, this.search,
      choice("Which", [["all", "All"], ["used", "Used here"]], this.only, (value) => { this.only = value; this.drawHead(); this.arrange(); }),
      h("span", { class: "space" }),
      h("label", { class: "lane" }, "Lane ", this.laneInput));
  }

  /** @param {import("lab/register.js").Register} register */
  typeOf(register) {
    return this.types.get(register.name) ?? register.type;
  }

  /** What a row shows. @param {number} index */
  sign(index) {
    const register = this.list[index];
    const { name, lanes } = register;
    const role = this.reads?.has(name) ? "r" : this.writes?.has(name) ? "w" : "";
    return `${name}|${this.typeOf(register)}|${lanes}|${register.data.join()}|${this.state.now.lane}|${role}|${this.fresh?.has(name)}|${this.opened === name}|${this.restyled}`;
  }

  /** The lanes of a row. @param {number} index @returns {import("lab/strips.js").Strip} */
  strip(index) {
    const register = this.list[index];
    return { register, type: this.typeOf(register), own: this.state.now.lane, signature: this.rows.known.get(index)?.signature ?? "" };
  }

  /**
   * @param {number} index
   * @param {HTMLElement | null} old
   */
  row(index, old) {
    const register = this.list[index];
    const { lane } = this.state.now;
    const known = register.lanes >>> lane & 1;
    const type = this.typeOf(register);
    const isFresh = this.fresh?.has(register.name);
    const role = this.reads?.has(register.name) ? "read" : this.writes?.has(register.name) ? "written" : "";
    const row = old ?? emptyRow();
    const [name, typed, value, , said] = /** @type {HTMLElement[]} */ ([...row.children]);
    setText(name, register.name);
    setText(typed, type);
    setText(value, known ? text(type, register.view, lane * register.size, register.size) : "–");
    setText(said, role === "read" ? "read next" : role === "written" ? "written next" : isFresh ? "new" : "");
    const kind = `register ${role} ${isFresh ? "fresh" : ""} ${this.opened === register.name ? "open" : ""}`;
    if (row.className !== kind) row.className = kind;
    row.setAttribute("data-register", register.name);
    return row;
  }

  /** @param {Event} event */
  clicked(event) {
    const target = event.target instanceof Element ? event.target : null;
    const name = target?.closest("[data-register]")?.getAttribute("data-register");
    if (!name) return;
    if (target?.closest(".value")) this.origin(name, this.state.now.lane);
    else this.open(name);
  }

  /** @param {string} name */
  open(name) {
    this.opened = this.opened === name ? "" : name;
    this.rows.refresh();
    this.drawLanes();
  }

  /**
   * @param {string} name
   * @param {number} lane
   */
  origin(name, lane) {
    const { warp } = this.state.now;
    const after = this.registers?.get(name)?.after(lane) ?? -1;
    this.state.set({ lane, tab: "origin", subject: { origin: `origin/register/${warp}/${lane}/${name}/${after + 1}` } });
  }

  drawLanes() {
    const register = this.registers?.get(this.opened);
    this.lanes.hidden = !register;
    if (!register) return;
    const type = this.typeOf(register);
    const cells = [];
    for (let lane = 0; lane < 32; lane++) {
      const known = register.lanes >>> lane & 1;
      cells.push(h("button", {
        type: "button", class: `cell ${known ? "" : "unknown"} ${lane === this.state.now.lane ? "own" : ""} ${(this.active ?? 0) >>> lane & 1 ? "" : "idle"}`,
        "data-lane": lane, "data-tip": `lane ${lane}: where does it come from?`, onclick: () => this.origin(register.name, lane),
      }, h("b", {}, lane), h("span", {}, known ? text(type, register.view, lane * register.size, register.size) : "–")));
    }
    const shown = [register.type, ...(SHOWN_AS[register.size] ?? []).filter((one) => one !== register.type)];
    fill(this.lanes,
      h("div", { class: "lanes-head" },
        h("strong", {}, register.name), h("span", { class: "note" }, lanesOf(register.lanes)), h("span", { class: "space" }),
        h("label", {}, "as ", select(shown, type, (value) => { this.types.set(register.name, value); this.rows.refresh(); this.drawLanes(); })),
        h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.open(register.name) }, "×")),
      h("div", { class: "cells" }, cells));
  }
}

/**
 * @param {string[]} options
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function select(options, chosen, choose) {
  const made = /** @type {HTMLSelectElement} */ (h("select", { onchange: () => choose(made.value) },
    options.map((one) => h("option", { value: one, selected: one === chosen || undefined }, one))));
  return made;
}

function emptyRow() {
  return h("div", { role: "button", tabindex: 0, class: "register" },
    h("span", { class: "name" }), h("span", { class: "type" }), h("span", { class: "value origin-link", "data-tip": "Where does it come from?" }),
    h("span"), h("span", { class: "role" }));
}

/** @type {Map<string, string>} names of registers with their numbers written out, by which they are ordered */
const keys = new Map();

/** @param {string} name */
function keyOf(name) {
  const known = keys.get(name) ?? name.replace(/\d+/g, (digits) => digits.padStart(9, "0"));
  keys.set(name, known);
  return known;
}

/**
 * `%r2` before `%r10`.
 * @param {string} one
 * @param {string} other
 */
function compare(one, other) {
  const [first, second] = [keyOf(one), keyOf(other)];
  return first < second ? -1 : first > second ? 1 : 0;
}
