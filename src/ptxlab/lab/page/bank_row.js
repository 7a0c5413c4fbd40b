/** A row of 32 words of shared memory on a canvas: what they hold as colors, and what happens to them. */

import { cleared, listen, styled } from "lab/palette.js";

/** @typedef {{ known: boolean, heat: number, hue: number | null, lanes: number[] | undefined, isFresh: boolean, landed: boolean, inside: boolean }} Word */

export const BANKS = 32;
const HIGH = 18;
const DARK = "#22252a"; // on a color that is light in both themes
/** @type {Map<number, string>} */
const colors = new Map();
/** @type {CanvasPattern | null} */
let stripes = null;
listen(() => { colors.clear(); stripes = null; });

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {Word[]} words
 */
export function paintWords(canvas, width, words) {
  const context = cleared(canvas, width, HIGH);
  const each = width / BANKS;
  context.font = `700 10px ${styled("mono")}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  words.forEach((word, bank) => {
    const left = Math.round(bank * each);
    if (word.inside) paintWord(context, word, left, Math.round((bank + 1) * each) - left - 1);
  });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Word} word
 * @param {number} left
 * @param {number} width
 */
function paintWord(context, { known, heat, hue, lanes, isFresh, landed }, left, width) {
  context.fillStyle = hue !== null ? `hsl(${hue} 60% 80%)` : lanes ? styled("violet-soft") : known ? colorOf(heat) : stripesOf(context);
  context.fillRect(left, 0, width, HIGH);
  if (landed) {
    context.fillStyle = styled("good");
    context.fillRect(left, HIGH - 2, width, 2);
  }
  if (lanes || isFresh) {
    context.lineWidth = 1.5;
    context.strokeStyle = !lanes ? styled("warning") : hue !== null ? "rgb(34 37 42 / 0.45)" : styled("violet");
    context.strokeRect(left + 0.75, 0.75, width - 1.5, HIGH - 1.5);
  }
  if (!lanes) return;
  context.fillStyle = hue !== null ? DARK : styled("violet");
  context.fillText(String(lanes[0]), left + width / 2, HIGH / 2 + 0.5, width - 1);
}

/** @param {number} heat */
function colorOf(heat) {
  const found = colors.get(heat) ?? `color-mix(in srgb, ${styled("accent")} ${heat}%, ${styled("sunk")})`;
  colors.set(heat, found);
  return found;
}

/** What was never written. @param {CanvasRenderingContext2D} context */
function stripesOf(context) {
  if (stripes) return stripes;
  const tile = new OffscreenCanvas(8, 8);
  const own = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
  own.strokeStyle = styled("rule");
  own.lineWidth = 1;
  for (const start of [-8, 0, 8]) {
    own.moveTo(start, 8);
    own.lineTo(start + 8, 0);
  }
  own.stroke();
  stripes = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
  return stripes;
}
