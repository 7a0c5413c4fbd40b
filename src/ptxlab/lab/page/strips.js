/** The lanes of registers as 32 small bars each: one canvas for all rows that are seen, as each canvas has its price. */

import { h } from "lab/dom.js";
import { number } from "lab/format.js";
import { cleared, styled } from "lab/palette.js";

/** @typedef {{ register: import("lab/register.js").Register, type: string, own: number, signature: string }} Strip */

const [LANES, HIGH, WIDE] = [32, 16, 192]; // pixels of a strip; it is as wide as its column, once that is known

export class Strips {
  /**
   * @param {number} height of a row
   * @param {(index: number) => Strip} strip of a row
   */
  constructor(height, strip) {
    this.height = height;
    this.strip = strip;
    this.first = this.past = 0;
    this.wide = WIDE;
    /** @type {string[]} of what is painted, by row */
    this.painted = [];
    this.key = "";
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { "aria-hidden": "true" }));
    this.element = h("div", { class: "strips" }, this.canvas);
    new ResizeObserver(([{ contentRect }]) => {
      if (!contentRect.width) return;
      this.wide = contentRect.width;
      this.show(this.first, this.past);
    }).observe(this.canvas);
  }

  /**
   * Paint the rows from one to another, of which some may be painted as they are.
   * @param {number} first
   * @param {number} past
   */
  show(first, past) {
    const key = `${first}/${past}/${this.wide}/${window.devicePixelRatio}`;
    if (key !== this.key) this.cover(first, past);
    this.key = key;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    for (let index = first; index < past; index++) {
      const strip = this.strip(index);
      if (this.painted[index - first] === strip.signature) continue;
      this.painted[index - first] = strip.signature;
      this.paint(context, (index - first) * this.height, strip);
    }
  }

  /**
   * @param {number} first
   * @param {number} past
   */
  cover(first, past) {
    const high = (past - first) * this.height;
    if (this.first !== first) this.element.style.top = `${first * this.height}px`;
    if (this.past - this.first !== past - first) this.canvas.style.height = `${high}px`;
    this.first = first;
    this.past = past;
    this.painted = [];
    cleared(this.canvas, this.wide, high);
  }

  /**
   * Bars between the least and the greatest value.
   * @param {CanvasRenderingContext2D} context
   * @param {number} top
   * @param {Strip} strip
   */
  paint(context, top, { register, type, own }) {
    context.clearRect(0, top, this.wide, this.height);
    const values = valuesOf(register, type);
    let [low, high, count] = [Infinity, -Infinity, 0];
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
      count++;
    }
    if (count === LANES && low === high) {
      context.fillStyle = styled("faint");
      context.font = `11px ${styled("sans")}`;
      context.textBaseline = "middle";
      context.fillText("same in all lanes", 0, top + this.height / 2, this.wide);
      return;
    }
    const each = Math.max(2, Math.floor(this.wide / LANES));
    const bottom = top + (this.height + HIGH) / 2;
    context.fillStyle = `color-mix(in srgb, ${styled("accent")} 45%, ${styled("rule")})`;
    for (let lane = 0; lane < LANES; lane++) {
      const value = values[lane];
      const tall = Number.isFinite(value) ? 2 + 12 * (high > low ? (value - low) / (high - low) : 1) : 1;
      if (lane === own) context.fillStyle = styled("accent");
      context.fillRect(each * lane, bottom - tall, each - 1, tall);
      if (lane === own) context.fillStyle = `color-mix(in srgb, ${styled("accent")} 45%, ${styled("rule")})`;
    }
  }
}

/**
 * The lanes of a register as numbers; NaN where there is none.
 * @param {import("lab/register.js").Register} register
 * @param {string} type
 */
function valuesOf({ lanes, size, view }, type) {
  const found = [];
  const shown = type === "hex" ? `u${8 * size}` : type;
  for (let lane = 0; lane < LANES; lane++) {
    const value = lanes >>> lane & 1 ? number(shown, view, lane * size) : null;
    found.push(value === null ? NaN : Number(value));
  }
  return found;
}
