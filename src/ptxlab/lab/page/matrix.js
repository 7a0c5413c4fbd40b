/** A matrix as cells, each in the color of the lane that has it; what changes is changed in place. */

import { h } from "lab/dom.js";
import { brief } from "lab/format.js";

/** @typedef {{ lane: number, name: string, register: any, value: string | number | null, bits: string }} Found a value, and the lane and the register that have it */

const CELLS = 16 * 256; // that are shown
const HEIGHT = 20; // of a row, in pixels

export class Matrix {
  /**
   * @param {any} layout
   * @param {number} copy
   * @param {(place: number) => Found} find
   * @param {number} own the lane that is chosen
   */
  constructor(layout, copy, find, own) {
    const { transposed } = layout;
    this.columns = transposed ? layout.rows : layout.columns;
    this.rows = Math.min(transposed ? layout.columns : layout.rows, Math.ceil(CELLS / this.columns));
    this.find = find;
    this.own = own;
    /** @type {number[]} of the cells, in registers and lanes */
    this.places = [];
    /** @type {string[]} what the cells say */
    this.texts = [];
    let cells = "<b></b>";
    for (let column = 0; column < this.columns; column++) cells += `<b>${column}</b>`;
    for (let row = 0; row < this.rows; row++) {
      cells += `<b>${row}</b>`;
      for (let column = 0; column < this.columns; column++) {
        const [r, c] = transposed ? [column, row] : [row, column];
        const place = layout.positions[(copy * layout.rows + r) * layout.columns + c];
        const { lane, value } = find(place);
        const text = textOf(value);
        this.places.push(place);
        this.texts.push(text);
        cells += `<i tabindex="0" class="element l${lane}${lane === own ? " own" : ""}">${text}</i>`;
      }
    }
    this.element = h("div", { class: "matrix", style: `--columns:${this.columns}` });
    this.element.innerHTML = cells; // numbers only: many elements at once
    /** @type {HTMLElement[]} */
    this.cells = [...this.element.querySelectorAll("i")];
  }

  /** In pixels. */
  get height() {
    return (this.rows + 1) * HEIGHT;
  }

  /**
   * @param {(place: number) => Found} find
   * @param {number} own the lane that is chosen
   */
  show(find, own) {
    this.find = find;
    this.places.forEach((place, index) => {
      const { lane, value } = find(place);
      const text = textOf(value);
      if (text !== this.texts[index]) /** @type {Text} */ (this.cells[index].firstChild).data = text;
      this.texts[index] = text;
      if (own !== this.own) this.cells[index].classList.toggle("own", lane === own);
    });
    this.own = own;
  }

  /** The element that a cell shows, and where it is. @param {Element} cell */
  at(cell) {
    const index = this.cells.indexOf(/** @type {HTMLElement} */ (cell));
    if (index < 0) return null;
    return { row: Math.floor(index / this.columns), column: index % this.columns, ...this.find(this.places[index]) };
  }
}

/** @param {string | number | null} value */
function textOf(value) {
  return typeof value === "number" ? brief(value) : value ?? "–";
}
