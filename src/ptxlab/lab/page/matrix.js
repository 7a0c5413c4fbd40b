/** A matrix of elements in the colors of their lanes, on canvases: of what it shows next, only what differs is drawn. */

import { h } from "lab/dom.js";
import { brief } from "lab/format.js";
import { cleared, styled } from "lab/palette.js";

/** @typedef {{ lane: number, name: string, register: any, value: string | number | null, bits: string }} Found a value, and the lane and the register that have it */

const CELLS = 16 * 256; // that are shown
const [HEAD, WIDTH, HEIGHT] = [24, 53, 20]; // of the numbers of rows, of a cell, in pixels
const PART = 64; // columns of a canvas: browsers have limits
const FITS = 7; // letters of a cell
const INK = "#22252a"; // on a color that is light in both themes
const COLORS = Array.from({ length: 32 }, (_, lane) => `hsl(${(lane * 137.5) % 360} 55% 90%)`);

export class Matrix {
  /**
   * @param {any} layout
   * @param {number} copy
   */
  constructor(layout, copy) {
    const { transposed } = layout;
    /** @type {number} */
    this.columns = transposed ? layout.rows : layout.columns;
    this.rows = Math.min(transposed ? layout.columns : layout.rows, Math.ceil(CELLS / this.columns));
    /** @type {(place: number) => Found} */
    this.find = () => ({ lane: 0, name: "", register: null, value: null, bits: "" });
    /** @type {number[]} of the cells, in registers and lanes */
    this.places = [];
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) {
        const [r, c] = transposed ? [column, row] : [row, column];
        this.places.push(layout.positions[(copy * layout.rows + r) * layout.columns + c]);
      }
    }
    /** @type {string[]} what the cells say */
    this.texts = [];
    this.own = this.next = -1; // the lane that is chosen: as it is drawn, and as it is to be drawn
    this.ratio = 0; // pixels of the screen for one, when it was drawn
    this.isSeen = true; // or near to what is seen
    this.isDrawn = false; // as it is now
    this.chosen = -1; // the cell that the keyboard has chosen
    this.canvases = Array.from({ length: Math.ceil(this.columns / PART) }, (_, part) => /** @type {HTMLCanvasElement} */ (h("canvas", { "data-part": part })));
    this.element = h("div", { class: "matrix", tabindex: 0, role: "group", "data-cells": this.places.length }, this.canvases);
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
    this.isDrawn = this.isSeen;
    if (!this.isSeen) {
      this.next = own;
      return;
    }
    const isNew = this.ratio !== window.devicePixelRatio;
    if (isNew) this.clear();
    /** @type {[number, number][]} cells that differ, and their lanes */
    const differing = [];
    this.places.forEach((place, index) => {
      const { lane, value } = find(place);
      const text = textOf(value);
      if (isNew || text !== this.texts[index] || (own !== this.own && (lane === own || lane === this.own))) differing.push([index, lane]);
      this.texts[index] = text;
    });
    this.own = this.next = own;
    if (!differing.length) return;
    this.paint(differing.filter(([, lane]) => lane !== own), false);
    this.paint(differing.filter(([, lane]) => lane === own), true);
    this.canvases.forEach((canvas, part) => { canvas.textContent = this.said(part); });
  }

  /** Whether it is near to what is seen: only then it is drawn. @param {boolean} isSeen */
  see(isSeen) {
    this.isSeen = isSeen;
    if (isSeen && !this.isDrawn) this.show(this.find, this.next);
  }

  /** Draw all of it, now or when it is shown next: the colors of the style are others. @param {boolean} isShown */
  restyle(isShown) {
    this.ratio = 0;
    if (isShown) this.show(this.find, this.next);
  }

  /** Nothing but the numbers of columns and rows. */
  clear() {
    this.ratio = window.devicePixelRatio;
    this.canvases.forEach((canvas, part) => {
      const [first, past] = [part * PART, Math.min((part + 1) * PART, this.columns)];
      const [left, width] = [part ? 0 : HEAD, (past - first) * WIDTH];
      canvas.style.width = `${left + width}px`;
      canvas.style.height = `${this.height}px`;
      const context = cleared(canvas, left + width, this.height);
      context.font = `10px ${styled("sans")}`;
      context.fillStyle = styled("faint");
      context.textAlign = "center";
      context.textBaseline = "middle";
      for (let column = first; column < past; column++) context.fillText(String(column), left + (column - first + 0.5) * WIDTH, HEIGHT / 2);
      if (!part) for (let row = 0; row < this.rows; row++) context.fillText(String(row), HEAD / 2, (row + 1.5) * HEIGHT);
    });
  }

  /**
   * @param {[number, number][]} cells with their lanes
   * @param {boolean} isOwn whether these are of the lane that is chosen
   */
  paint(cells, isOwn) {
    if (!cells.length) return;
    const contexts = this.canvases.map((one) => /** @type {CanvasRenderingContext2D} */ (one.getContext("2d")));
    for (const context of contexts) {
      context.font = `${isOwn ? "700 " : ""}11px ${styled("mono")}`;
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.lineWidth = 1.5;
      context.strokeStyle = styled("accent");
    }
    for (const [index, lane] of cells) {
      const column = index % this.columns;
      const part = Math.floor(column / PART);
      const context = contexts[part];
      const left = (part ? 0 : HEAD) + (column % PART) * WIDTH;
      const top = (Math.floor(index / this.columns) + 1) * HEIGHT;
      context.fillStyle = COLORS[lane];
      context.fillRect(left, top, WIDTH - 1, HEIGHT - 1);
      if (isOwn) context.strokeRect(left + 0.75, top + 0.75, WIDTH - 2.5, HEIGHT - 2.5);
      context.fillStyle = INK;
      const text = this.texts[index];
      if (text.length > FITS) context.fillText(text, left + WIDTH - 5, top + HEIGHT / 2, WIDTH - 8);
      else context.fillText(text, left + WIDTH - 5, top + HEIGHT / 2);
    }
  }

  /** The rows of a canvas as text, for those who do not see it. @param {number} part */
  said(part) {
    const rows = [];
    for (let at = part * PART; at < this.places.length; at += this.columns) {
      rows.push(this.texts.slice(at, Math.min(at + PART, at - part * PART + this.columns)).join(" "));
    }
    return rows.join("\n");
  }

  /** The element that the pointer is at, or that the keyboard has chosen. @param {Event} event */
  at(event) {
    const index = event instanceof MouseEvent ? this.indexAt(event) : this.chosen;
    if (index < 0) return null;
    return { row: Math.floor(index / this.columns), column: index % this.columns, ...this.find(this.places[index]) };
  }

  /** The cell at the pointer; -1 if there is none. @param {MouseEvent} event */
  indexAt(event) {
    const canvas = event.target instanceof HTMLCanvasElement ? event.target : null;
    const part = canvas ? this.canvases.indexOf(canvas) : -1;
    if (!canvas || part < 0) return -1;
    const box = canvas.getBoundingClientRect();
    const column = part * PART + Math.floor((event.clientX - box.left - (part ? 0 : HEAD)) / WIDTH);
    const row = Math.floor((event.clientY - box.top) / HEIGHT) - 1;
    return row >= 0 && row < this.rows && column >= 0 && column < this.columns ? row * this.columns + column : -1;
  }

  /** Choose a cell with the arrow keys; whether the key was one of these. @param {string} key */
  choose(key) {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns }[key];
    if (!by) return false;
    const next = this.chosen < 0 ? 0 : this.chosen + by;
    if (next >= 0 && next < this.places.length) this.chosen = next;
    return true;
  }
}

/** @param {string | number | null} value */
function textOf(value) {
  return typeof value === "number" ? brief(value) : value ?? "–";
}
