/** Registers of the warp: the value of the lane that is chosen, and all lanes of a register that is opened. */

import { choice, fill, h, Rows } from "lab/dom.js";
import { lanesOf, number, text } from "lab/format.js";
import { latest } from "lab/state.js";

const HEIGHT = 26;
const order = new Intl.Collator("en", { numeric: true });
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
    /** @type {Array<import("lab/run.js").Register>} */
    this.list = [];
    this.rows = new Rows(HEIGHT, (index) => this.row(index), { class: "register-rows" }, (index) => this.sign(index));
    this.rows.element.addEventListener("click", (event) => this.clicked(event));
    this.rows.element.addEventListener("keydown", (event) => { if (event.key === "Enter") this.clicked(event); });
    this.search = /** @type {HTMLInputElement} */ (h("input", {
      type: "search", placeholder: "Filter", "aria-label": "Filter registers",
      oninput: () => { this.filter = this.search.value; this.arrange(); },
    }));
    this.head = h("div", { class: "tools" });
    this.lanes = h("div", { class: "lanes-of", id: "lanes" });
    this.none = h("p", { class: "problem", hidden: true });
    this.element = h("div", { class: "view" }, this.head, this.lanes, this.none, this.rows.element);
    this.update = latest(async (now) => {
      const [registers, place] = await Promise.all([run.registers(now.warp, now.position), run.place(now.warp, now.position)]);
      return { registers, place, active: await run.active(place.step) };
    }, (found) => this.show(found), (wrong) => fill(this.lanes, h("p", { class: "problem" }, wrong.message)));
  }

  /** @param {{ registers: Map<string, import("lab/run.js").Register>, place: import("lab/run.js").Place, active: number }} found */
  show({ registers, place, active }) {
    this.registers = registers;
    this.place = place;
    this.active = active;
    const next = place.instruction >= 0 ? this.run.instructions[place.instruction] : null;
    this.reads = new Set(next?.reads ?? []);
    this.writes = new Set(next?.writes ?? []);
    const before = place.before;
    this.fresh = new Set([...registers.values()].filter((one) => before >= 0 && one.after.includes(before)).map((one) => one.name));
    this.arrange();
  }

  arrange() {
    const wanted = this.filter.trim().toLowerCase();
    const rank = (/** @type {string} */ name) => (this.reads?.has(name) ? 0 : this.writes?.has(name) ? 1 : this.fresh?.has(name) ? 2 : 3);
    this.list = [...(this.registers?.values() ?? [])].filter((one) =>
      (!wanted || one.name.toLowerCase().includes(wanted)) && (this.only === "all" || rank(one.name) < 3));
    this.list.sort((one, other) => (this.only === "all" ? 0 : rank(one.name) - rank(other.name)) || compare(one.name, other.name));
    fill(this.head, this.search,
      choice("Which", [["all", "All"], ["used", "Used here"]], this.only, (value) => { this.only = value; this.arrange(); }),
      h("span", { class: "space" }),
      h("label", { class: "lane" }, "Lane ", this.laneInput()));
    this.rows.resize(this.list.length);
    this.drawLanes();
    this.none.hidden = this.list.length > 0;
    this.none.textContent = this.registers?.size ? "No register is of this kind." : `Here no register is written yet; → lets ${this.run.nameOf(this.state.now.warp)} execute an instruction.`;
  }

  laneInput() {
    const { lane } = this.state.now;
    const input = /** @type {HTMLInputElement} */ (h("input", {
      type: "number", min: 0, max: 31, value: lane, id: "lane", "aria-label": "Lane",
      onchange: () => this.state.set({ lane: Math.max(0, Math.min(31, Number(input.value) || 0)) }),
    }));
    return input;
  }

  /** @param {import("lab/run.js").Register} register */
  typeOf(register) {
    return this.types.get(register.name) ?? register.type;
  }

  /** What a row shows. @param {number} index */
  sign(index) {
    const register = this.list[index];
    const { name, lanes } = register;
    const role = this.reads?.has(name) ? "r" : this.writes?.has(name) ? "w" : "";
    return `${name}|${this.typeOf(register)}|${lanes}|${register.data.join()}|${this.state.now.lane}|${role}|${this.fresh?.has(name)}|${this.opened === name}`;
  }

  /** @param {number} index */
  row(index) {
    const register = this.list[index];
    const { lane } = this.state.now;
    const known = register.lanes >>> lane & 1;
    const type = this.typeOf(register);
    const value = known ? text(type, register.view, lane * register.size, register.size) : "–";
    const role = this.reads?.has(register.name) ? "read" : this.writes?.has(register.name) ? "written" : "";
    const said = role === "read" ? "read next" : role === "written" ? "written next" : this.fresh?.has(register.name) ? "new" : "";
    const row = h("div", {
      class: `register ${role} ${this.fresh?.has(register.name) ? "fresh" : ""} ${this.opened === register.name ? "open" : ""}`,
      "data-register": register.name, role: "button", tabindex: 0,
    });
    // Names, types and numbers have nothing that HTML means something by: many elements at once.
    row.innerHTML = `<span class="name">${register.name}</span><span class="type">${type}</span><span class="value origin-link" data-tip="Where does it come from?">${value}</span>${strip(register, type, lane)}<span class="role">${said}</span>`;
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
    const after = this.registers?.get(name)?.after[lane] ?? -1;
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

/**
 * The lanes of a register as 32 small bars between its least and its greatest value, as HTML.
 * @param {import("lab/run.js").Register} register
 * @param {string} type
 * @param {number} own
 */
function strip(register, type, own) {
  const values = [];
  for (let lane = 0; lane < 32; lane++) {
    const found = register.lanes >>> lane & 1 ? number(type === "hex" ? `u${8 * register.size}` : type, register.view, lane * register.size) : null;
    values.push(found === null ? NaN : Number(found));
  }
  const finite = values.filter(Number.isFinite);
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low;
  if (finite.length === 32 && span === 0) return '<span class="strip same">same in all lanes</span>';
  const bar = (/** @type {number} */ value, /** @type {number} */ lane) => {
    const height = Number.isFinite(value) ? 2 + 12 * (span ? (value - low) / span : 1) : 1;
    return `M${6 * lane} 16v${-height.toFixed(1)}h5V16z`;
  };
  return `<svg class="strip" viewBox="0 0 191 16" preserveAspectRatio="none" aria-hidden="true"><path d="${values.map(bar).join("")}"/><path class="own" d="${bar(values[own], own)}"/></svg>`;
}

/**
 * `%r2` before `%r10`.
 * @param {string} one
 * @param {string} other
 */
export function compare(one, other) {
  return order.compare(one, other);
}
