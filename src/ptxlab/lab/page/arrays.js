/** Arrays in global memory: their elements at the position. */

import { fill, h, Rows, tipsIn } from "lab/dom.js";
import { float, number } from "lab/format.js";
import { select } from "lab/registers.js";
import { latest } from "lab/state.js";

const WIDTH = 66;

export class Arrays {
  title = "Arrays";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    this.run = run;
    this.state = state;
    this.list = run.info.arrays;
    this.chosen = Math.max(0, this.list.length - 1);
    /** @type {Map<number, import("lab/run.js").Page>} */
    this.pages = new Map();
    this.head = h("div", { class: "tools" });
    this.rows = new Rows(22, (index, old) => this.row(index, old), { class: "array-rows" }, (index) => this.sign(index));
    tipsIn(this.rows.element, (target) => this.tip(target));
    this.left = this.width = 0;
    this.rows.element.addEventListener("scroll", () => { this.left = this.rows.element.scrollLeft; this.update(this.state.now); }, { passive: true });
    new ResizeObserver(([entry]) => { this.width = entry.contentRect.width; this.rows.refresh(); }).observe(this.rows.element);
    this.rows.element.addEventListener("click", (event) => {
      const cell = event.target instanceof Element ? event.target.closest("[data-element]") : null;
      const size = this.list[this.chosen]?.itemsize ?? 1;
      if (cell) this.origin(Number(cell.getAttribute("data-element")) * size, size);
    });
    this.element = h("div", { class: "view" }, this.head, this.rows.element);
    this.update = latest((now) => this.load(now), () => this.rows.refresh(), (wrong) => fill(this.head, h("p", { class: "problem" }, wrong.message)));
    this.choose(this.chosen);
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = index;
    const one = this.list[index];
    if (!one) {
      fill(this.head, h("p", { class: "problem" }, "The launch was given no array."));
      return;
    }
    const count = Math.floor(one.size / Math.max(one.itemsize, 1));
    this.columns = one.shape.length > 1 ? one.shape[one.shape.length - 1] : Math.min(count, 16);
    this.count = count;
    this.pages = new Map();
    const names = this.list.map((/** @type {any} */ each) => each.name);
    fill(this.head, h("label", {}, "Array ", select(names, one.name, (name) => { this.choose(names.indexOf(name)); this.update(this.state.now); })),
      h("span", { class: "note" }, `${one.dtype || "bytes"} ${one.shape.join(" × ") || one.size}`), h("span", { class: "space" }),
      h("span", { class: "note" }, "Click an element for its origin."));
    this.rows.resize(Math.ceil(count / Math.max(this.columns, 1)));
    this.rows.inner.style.width = `${70 + this.columns * WIDTH}px`;
  }

  /** @param {import("lab/state.js").Looked} now */
  async load(now) {
    const one = this.list[this.chosen];
    if (!one) return;
    const [top, bottom] = this.rows.range;
    const bytes = (this.columns ?? 1) * one.itemsize;
    const first = Math.floor((Math.floor(top / 22) * bytes) / this.run.info.page);
    const last = Math.floor(Math.min(one.size - 1, (Math.ceil(bottom / 22) + 1) * bytes) / this.run.info.page);
    const numbers = [];
    for (let page = first; page <= Math.min(last, first + 24); page++) numbers.push(page);
    const pages = await Promise.all(numbers.map((page) => this.run.page("global", this.chosen, page, now.position)));
    this.pages = new Map(numbers.map((page, index) => [page, pages[index]]));
  }

  /**
   * @param {number} at
   * @param {number} size
   */
  origin(at, size) {
    const { position } = this.state.now;
    const isOver = this.run.blocks.every((one) => one.last <= position);
    this.state.set({ tab: "origin", subject: { origin: `origin/memory/global/${this.chosen}/${at}/${size}/${isOver ? this.run.count : position}` } });
  }

  /** The columns that are seen. @returns {[number, number]} */
  seen() {
    const [scrollLeft, clientWidth] = [this.left, this.width];
    const first = Math.max(0, Math.floor(scrollLeft / WIDTH) - 1);
    return [first, Math.min(this.columns ?? 1, first + Math.ceil((clientWidth || 700) / WIDTH) + 2)];
  }

  /** What a row shows. @param {number} index */
  sign(index) {
    const one = this.list[this.chosen];
    const [first, past] = this.seen();
    const found = [this.chosen, first, past];
    for (let column = first; column < past; column++) {
      const at = (index * (this.columns ?? 1) + column) * one.itemsize;
      const page = this.pages.get(Math.floor(at / this.run.info.page));
      if (!page) continue;
      const write = page.last(at - page.base);
      for (let byte = 0; byte < one.itemsize; byte++) found.push(page.data[at - page.base + byte]);
      if (write) found.push(-1, Number(write.after === this.state.now.position - 1));
    }
    return found.join();
  }

  /**
   * @param {number} index
   * @param {HTMLElement | null} old
   */
  row(index, old) {
    const one = this.list[this.chosen];
    const columns = this.columns ?? 1;
    const [first, past] = this.seen();
    let cells = "";
    for (let column = first; column < past; column++) {
      const element = index * columns + column;
      if (element >= (this.count ?? 0)) break;
      const { shown, write } = this.read(one, element);
      const isFresh = write && write.after === this.state.now.position - 1;
      cells += shown ? `<i class="origin-link ${isFresh ? "fresh" : ""} ${write ? "written" : ""}" data-element="${element}">${shown}</i>` : "<i></i>";
    }
    const row = old ?? h("div", { class: "array-row" });
    // Numbers only: many elements at once.
    row.innerHTML = `<b>${index * (one.shape.length > 1 ? 1 : columns)}</b><span class="before" style="width:${first * WIDTH}px"></span>${cells}`;
    return row;
  }

  /**
   * An element of an array as text, empty if it is not known, and its last write.
   * @param {any} one
   * @param {number} element
   */
  read(one, element) {
    const at = element * one.itemsize;
    const page = this.pages.get(Math.floor(at / this.run.info.page));
    const inside = page ? at - page.base : 0;
    if (!page || inside + one.itemsize > page.data.length) return { shown: "", write: undefined };
    const value = number(one.dtype || "uint8", page.view, inside);
    return { shown: typeof value === "number" && /float/.test(one.dtype) ? float(value) : String(value ?? "?"), write: page.last(inside) };
  }

  /** What is said of an element. @param {Element} target */
  tip(target) {
    const given = target.getAttribute("data-element");
    const one = this.list[this.chosen];
    if (given === null) return "";
    const element = Number(given);
    const columns = this.columns ?? 1;
    const { shown, write } = this.read(one, element);
    const name = one.shape.length > 1 ? `${one.name}[${Math.floor(element / columns)}, ${element % columns}]` : `${one.name}[${element}]`;
    return `${name} = ${shown}${write ? `\nwritten at step ${write.after}` : ""}`;
  }
}
