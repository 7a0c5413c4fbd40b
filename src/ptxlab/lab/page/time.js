/** Time: buttons and keys that move the position, the bar that it is dragged along, and the timeline below it. */

import { fill, h } from "lab/dom.js";
import { grouped } from "lab/format.js";

const SPEEDS = [["4", "4/s"], ["15", "15/s"], ["60", "60/s"]];

export class Time {
  /**
   * @param {HTMLElement} element
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(element, run, state) {
    this.run = run;
    this.state = state;
    this.playing = 0;
    this.speed = 15;
    this.slider = /** @type {HTMLInputElement} */ (h("input", {
      type: "range", min: 0, max: run.count, value: state.now.position, id: "position", "aria-label": "Position in warp steps",
      oninput: () => { this.stop(); this.state.set({ position: Number(this.slider.value) }); },
    }));
    this.where = h("span", { class: "where", id: "where" });
    this.playButton = h("button", { type: "button", id: "play", onclick: () => this.play(), "data-tip": "Play (space)" }, "▶");
    this.bar = h("div", { class: "transport" },
      h("div", { class: "buttons" },
        button("⇤", "first", "Start (Home)", () => this.go(0)),
        button("◀", "back", "This warp, one step back (←)", () => this.step(-1)),
        this.playButton,
        button("▶▏", "forward", "This warp, one step (→)", () => this.step(1)),
        button("⇥", "last", "End (End)", () => this.go(run.count)),
        ...(run.source.kind === "embedded" ? [] : [
          button("↷", "over", "This lane, a line, over calls (l; Shift+L back)", () => this.line("over", false)),
          button("↘", "into", "This lane, a line, into calls (i; Shift+I back)", () => this.line("in", false)),
          button("↗", "out", "Out of the function (o; Shift+O back)", () => this.line("out", false))])),
      this.slider, this.where, this.speeds());
    this.lower = h("div", { id: "timeline" });
    fill(element, this.bar, this.lower);
    state.listen((now) => run.settled(now).then(() => this.show(state.now)));
    this.show(state.now);
    const key = (/** @type {KeyboardEvent} */ event) => {
      if (this.bar.isConnected) this.key(event);
      else document.removeEventListener("keydown", key); // another launch is shown
    };
    document.addEventListener("keydown", key);
  }

  speeds() {
    const made = /** @type {HTMLSelectElement} */ (h("select", { class: "speed", "aria-label": "Speed", onchange: () => { this.speed = Number(made.value); } },
      SPEEDS.map(([value, text]) => h("option", { value, selected: value === "15" || undefined }, text))));
    return made;
  }

  /** @param {import("lab/state.js").Looked} now */
  show(now) {
    this.slider.value = String(now.position);
    const part = this.run.count ? now.position / this.run.count : 0;
    this.slider.style.setProperty("--part", `${100 * part}%`);
    fill(this.where, h("b", {}, grouped(now.position)), ` of ${grouped(this.run.count)}`,
      h("span", { class: "whose" }, this.run.nameOf(now.warp)));
  }

  /** @param {number} position */
  go(position) {
    this.stop();
    this.state.set({ position: Math.max(0, Math.min(this.run.count, position)) });
  }

  /**
   * Let the warp execute an instruction, or take it back.
   * @param {number} by
   */
  async step(by) {
    const { position, warp } = this.state.now;
    const place = await this.run.place(warp, position);
    if (by > 0) {
      if (place.step < 0) return false;
      const after = await this.run.place(warp, place.step + 1);
      this.state.set({ position: after.step >= 0 ? after.step : place.step + 1 });
      return after.step >= 0;
    }
    if (place.before >= 0) this.state.set({ position: place.before });
    return place.before >= 0;
  }

  /**
   * Let the lane execute a line of the source, or take it back.
   * @param {"over" | "in" | "out"} kind
   * @param {boolean} back
   */
  async line(kind, back) {
    if (this.run.source.kind === "embedded") return;
    this.stop();
    const { position, warp, lane } = this.state.now;
    const found = await this.run.source.get(`step/${warp}/${lane}/${position}/${kind}/${back ? 1 : 0}`);
    this.state.set({ position: found.position });
  }

  play() {
    if (this.playing) {
      this.stop();
      return;
    }
    this.playing = 1;
    this.playButton.textContent = "❚❚";
    const next = async () => {
      if (!this.playing) return;
      const start = performance.now();
      if (!await this.step(1)) {
        this.stop();
        return;
      }
      this.playing = window.setTimeout(next, Math.max(0, 1000 / this.speed - (performance.now() - start)));
    };
    next();
  }

  stop() {
    if (this.playing) clearTimeout(this.playing);
    this.playing = 0;
    this.playButton.textContent = "▶";
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = event.target instanceof HTMLElement ? event.target : null;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && target !== this.slider) return;
    const { position, warp } = this.state.now;
    const block = this.run.blocks.find((one) => one.number === this.run.blockOf(warp));
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowRight: () => { this.stop(); if (event.shiftKey) this.go(position + 1); else this.step(1); },
      ArrowLeft: () => { this.stop(); if (event.shiftKey) this.go(position - 1); else this.step(-1); },
      Home: () => this.go(0),
      End: () => this.go(this.run.count),
      " ": () => { if (target?.tagName !== "BUTTON") this.play(); },
      n: () => this.turn(block?.warps ?? [], 1),
      p: () => this.turn(block?.warps ?? [], -1),
      l: () => this.line("over", false),
      L: () => this.line("over", true),
      i: () => this.line("in", false),
      I: () => this.line("in", true),
      o: () => this.line("out", false),
      O: () => this.line("out", true),
    };
    const chosen = keys[event.key];
    if (!chosen || (event.key === " " && target?.tagName === "BUTTON")) return;
    event.preventDefault();
    chosen();
  }

  /**
   * The next warp of the block, or the one before.
   * @param {number[]} warps
   * @param {number} by
   */
  turn(warps, by) {
    const at = warps.indexOf(this.state.now.warp);
    if (warps.length) this.state.set({ warp: warps[(at + by + warps.length) % warps.length] });
  }
}

/**
 * @param {string} text
 * @param {string} id
 * @param {string} tip
 * @param {() => void} onclick
 */
function button(text, id, tip, onclick) {
  return h("button", { type: "button", id, "data-tip": tip, "aria-label": tip, onclick }, text);
}
