/** The source: the PTX, what it was compiled from, or both beside each other, linked line by line; SASS beside the PTX. */

import { fill, h } from "lab/dom.js";
import { Listing } from "lab/listing.js";
import { latest } from "lab/state.js";

const WIDTHS = { one: "46%", two: "60%" }; // of the source in the page

export class Code {
  /**
   * @param {HTMLElement} element
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(element, run, state) {
    this.run = run;
    this.state = state;
    this.element = element;
    /** @type {string} what is shown first; the PTX is empty */
    this.file = run.info.sources[0]?.file ?? "";
    this.hasPtx = false;
    this.hasSass = false;
    this.width = WIDTHS.one;
    /** @type {Map<string, Listing>} */
    this.listings = new Map();
    this.ended = false;
    /** @type {import("lab/run.js").Place[]} */
    this.places = [];
    this.position = this.warp = this.at = -1;
    this.head = h("div", { class: "pane-head" });
    this.body = h("div", { class: "listings" });
    fill(element, this.head, this.body);
    this.arrange();
    this.update = latest((now) => run.places(run.blockOf(now.warp), now.position), (places, now) => this.show(places, now), () => {});
    state.listen((now) => this.update(now));
    this.update(state.now);
  }

  /** @param {string} file @returns {Listing} */
  listing(file) {
    const known = this.listings.get(file);
    if (known) return known;
    const made = new Listing(this.run, this.state, file, { line: (line, backwards) => this.goTo(file, line, backwards) });
    this.listings.set(file, made);
    return made;
  }

  /** Make the lines that are not seen yet. */
  *prepare() {
    for (const one of this.shown) yield* one.rows.prepare();
  }

  get shown() {
    return this.file && this.hasPtx ? [this.listing(this.file), this.listing("")] : [this.listing(this.file)];
  }

  /** Show the files that are chosen. */
  arrange() {
    this.drawHead();
    this.place();
    this.refresh();
  }

  drawHead() {
    const { sources, name } = this.run.info;
    /** @type {Array<[string, string]>} */
    const files = [...sources.map((/** @type {any} */ one) => [one.file, one.file.split("/").pop()]), ["", name.split("/").pop() || "PTX"]];
    fill(this.head,
      files.length > 1 ? this.chooser(files) : h("span", { class: "file" }, files[0][1]),
      h("span", { class: "space" }),
      this.file ? toggle("ptx", "PTX", this.hasPtx, "The PTX beside it", () => { this.hasPtx = !this.hasPtx; this.arrange(); }) : null,
      this.file && !this.hasPtx ? null : toggle("sass", "SASS", this.hasSass, this.sassProblem ?? "What ptxas makes of each line", () => this.toggleSass()));
  }

  /** Put the listings that are shown in front; the others stay laid out behind them, so that they are shown fast. */
  place() {
    for (const { element } of this.shown) if (element.parentNode !== this.body) this.body.append(element);
    for (const one of this.listings.values()) {
      const isShown = this.shown.includes(one);
      one.element.classList.toggle("behind", !isShown);
      one.element.setAttribute("aria-hidden", String(!isShown));
      one.element.tabIndex = isShown ? 0 : -1;
    }
    const wide = this.shown.length + Number(this.hasSass && this.shown.some((one) => !one.file));
    const width = wide > 1 ? WIDTHS.two : WIDTHS.one;
    if (width !== this.width) document.documentElement.style.setProperty("--code", width); // it styles all anew
    this.width = width;
    this.body.classList.toggle("two", this.shown.length > 1);
    if (this.chooserMade) this.chooserMade.value = this.file;
  }

  /** @param {Array<[string, string]>} files */
  chooser(files) {
    const made = /** @type {HTMLSelectElement} */ (h("select", { id: "file", "aria-label": "File", onchange: () => { this.file = made.value; this.arrange(); } },
      files.map(([file, text]) => h("option", { value: file, selected: file === this.file || undefined, title: file }, text))));
    this.chooserMade = made;
    return made;
  }

  async toggleSass() {
    this.hasSass = !this.hasSass;
    let sass = null;
    if (this.hasSass) {
      try {
        const found = await this.run.source.get("sass");
        sass = new Map(Object.entries(found.lines).map(([line, texts]) => [Number(line), /** @type {string[]} */ (texts)]));
      } catch (wrong) {
        this.hasSass = false;
        this.sassProblem = String(wrong instanceof Error ? wrong.message : wrong);
      }
    }
    this.listing("").beside(sass);
    this.arrange();
  }

  /**
   * @param {import("lab/run.js").Place[]} places
   * @param {import("lab/state.js").Looked} now
   */
  show(places, now) {
    this.places = places;
    const own = places.find((one) => one.warp === now.warp);
    const at = own ? (own.instruction >= 0 ? own.instruction : own.instructionBefore) : -1;
    this.at = at;
    this.ended = Boolean(own?.ended);
    const moved = now.position !== this.position || now.warp !== this.warp;
    this.position = now.position;
    this.warp = now.warp;
    if (moved && this.follow(at)) this.place();
    this.refresh();
  }

  refresh() {
    const current = { line: this.run.instructions[this.at]?.line ?? 0, ended: Boolean(this.ended), related: this.related(this.at) };
    for (const one of this.shown) one.show(this.places, current);
  }

  /** The lines of the PTX that come from the same line of the file. @param {number} instruction */
  related(instruction) {
    if (!this.file || instruction < 0) return new Set();
    const { lines } = this.listing(this.file);
    return new Set(lines.compiled.get(lines.shown(this.run.instructions[instruction].line)) ?? []);
  }

  /** Go to the file of an instruction, if it is not in the one that is shown. @param {number} instruction */
  follow(instruction) {
    const places = this.run.instructions[instruction]?.sources ?? [];
    const known = this.run.info.sources.map((/** @type {any} */ one) => one.file);
    const next = places.find(([file]) => known.includes(file))?.[0];
    if (!this.file || !next || places.some(([file]) => file === this.file)) return false;
    this.file = next;
    return true;
  }

  /**
   * Go to the next time that the warp executes a line, or the time before; else that any warp does.
   * @param {string} file
   * @param {number} line
   * @param {boolean} [backwards]
   */
  async goTo(file, line, backwards = false) {
    const lines = file ? this.listing(file).lines.compiled.get(line) ?? [] : [line];
    const found = await Promise.all([...new Set(lines)].map((one) => this.run.source.get(`line/${one}`)));
    const { position, warp } = this.state.now;
    const all = found.flatMap((one) => one.steps.map((/** @type {number} */ step, /** @type {number} */ index) => ({ step, warp: one.warps[index] })));
    all.sort((one, other) => one.step - other.step);
    const own = all.filter((one) => one.warp === warp);
    const among = own.length ? own : all;
    if (!among.length) return;
    const before = among.filter((one) => one.step < position);
    const next = backwards ? before[before.length - 1] ?? among[among.length - 1] : among.find((one) => one.step > position) ?? among[0];
    this.state.set({ position: next.step, warp: next.warp });
  }
}

/**
 * @param {string} id
 * @param {string} text
 * @param {boolean} on
 * @param {string} tip
 * @param {() => void} onclick
 */
function toggle(id, text, on, tip, onclick) {
  return h("button", { type: "button", class: `toggle ${on ? "on" : ""}`, "aria-pressed": on, id, "data-tip": tip, onclick }, text);
}
