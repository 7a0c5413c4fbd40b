/** Variables of the source as a lane sees them, and values of expressions. */

import { fill, h } from "lab/dom.js";
import { Panel } from "lab/panel.js";

/**
 * @typedef {{ name: string, type: string, value: string }} Variable
 * @typedef {{ function: string, line: number, variables: Variable[] }} Frame
 * @typedef {{ value?: string, type?: string, problem?: string }} Value
 */

export class Variables extends Panel {
  title = "Variables";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    super(run, state, "variables");
    /** @type {string[]} */
    this.watched = [];
    this.input = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", placeholder: "Expression: As[ty][k], %r5 + 1, shared.f32[8]", "aria-label": "Expression", id: "expression", style: "flex: 1",
      onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") this.watch(); },
    }));
    this.until = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", placeholder: "Run to: 15 if k == 1", "aria-label": "Run to a line; with Shift+Enter backwards", id: "until", style: "flex: 1",
      onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") this.stopAt(event.shiftKey); },
    }));
    this.answer = h("p", { class: "note", "aria-live": "polite" });
    const isLive = run.source.kind !== "embedded";
    this.element.prepend(h("div", { class: "tools" }, this.input, isLive ? this.until : null), this.answer);
  }

  /** Go to the next stop at a line, or to the one before. @param {boolean} back */
  async stopAt(back) {
    const wanted = this.until.value.trim();
    if (!wanted) return;
    const found = await this.run.source.get(`stop/${this.state.now.position}/${back ? 1 : 0}/${encoded(wanted)}`);
    this.answer.textContent = found.problem ?? found.said;
    if (!found.problem) this.state.set({ position: found.position, warp: found.warp, lane: found.lane });
  }

  watch() {
    const expression = this.input.value.trim();
    if (!expression) return;
    if (!this.watched.includes(expression)) this.watched.push(expression);
    this.input.value = "";
    this.update(this.state.now);
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const place = `${now.warp}/${now.lane}/${now.position}`;
    const [listed, ...values] = await Promise.all([this.run.source.get(`variables/${place}`),
      ...this.watched.map((one) => this.run.source.get(`value/${place}/${encoded(one)}`))]);
    return { listed, values };
  }

  /** @param {{ listed: { frames: Frame[], known: boolean, locals: boolean }, values: Value[] }} found */
  show({ listed, values }) {
    const watched = this.watched.map((name, index) => row(name, values[index].type ?? "", values[index].value ?? "", values[index].problem,
      () => { this.watched.splice(index, 1); this.update(this.state.now); }));
    const frames = listed.frames.filter((frame) => frame.variables.length).map((frame) => h("section", {},
      h("h3", {}, frame.function, h("span", { class: "note" }, ` line ${frame.line}`)),
      h("table", {}, frame.variables.map((one) => row(one.name, one.type, one.value)))));
    const note = !listed.known ? "Names of variables are known of CUDA C++; expressions of registers, arrays and shared variables always."
      : listed.locals ? "" : "This code is optimized: values of local variables are known with -G.";
    fill(this.body, watched.length ? h("table", { class: "watched" }, watched) : null, ...frames, note ? h("p", { class: "note" }, note) : null);
  }
}

/** A text as part of a name. @param {string} text */
function encoded(text) {
  return `x${[...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * @param {string} name
 * @param {string} type
 * @param {string} value
 * @param {string} [problem]
 * @param {() => void} [remove]
 */
function row(name, type, value, problem, remove) {
  const isAbsent = value.startsWith("<");
  return h("tr", {},
    h("th", { scope: "row" }, h("code", {}, name)),
    h("td", { class: "note" }, type),
    h("td", { class: problem || isAbsent ? "note" : "value" }, problem ?? (isAbsent ? value.slice(1, -1) : value)),
    h("td", {}, remove ? h("button", { type: "button", class: "icon", "aria-label": `Remove ${name}`, onclick: remove }, "×") : null));
}
