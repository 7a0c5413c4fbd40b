/** Tiles: matrices in shared memory as the next instruction reads them, the swizzle undone, each chunk with its origin. */

import { fill, h } from "lab/dom.js";
import { offer } from "lab/fragments.js";
import { brief, float, number, sizeOf } from "lab/format.js";
import { Panel } from "lab/panel.js";

/** @typedef {{ operand: string, type: string, rows: number, chunks: number, about: string, transposed: boolean, addresses: number[],
 *   sources: Array<number[] | null> }} Tile */

export class Tiles extends Panel {
  title = "Tiles";

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    const place = await run.place(now.warp, now.position);
    const tiles = place.step >= 0 && run.instructions[place.instruction].tile ? /** @type {Tile[]} */ (await run.source.get(`tiles/${place.step}`)) : [];
    const block = run.blockOf(now.warp);
    const wanted = [...new Set(tiles.flatMap((one) => one.addresses.map((at) => Math.floor(at / run.info.page))))].filter((one) => one >= 0);
    const pages = await Promise.all(wanted.map((page) => run.page("shared", block, page, place.step)));
    return { place, tiles, pages: new Map(wanted.map((page, index) => [page, pages[index]])) };
  }

  /** @param {{ place: import("lab/run.js").Place, tiles: Tile[], pages: Map<number, import("lab/run.js").Page> }} found */
  show({ place, tiles, pages }) {
    if (!tiles.length) {
      const lines = this.run.instructions.filter((one) => one.tile).map((one) => one.line);
      fill(this.body, offer("The next instruction reads no matrix from shared memory. These do:", lines, this.run, this.state));
      return;
    }
    fill(this.body,
      h("p", { class: "note" }, `Line ${this.run.instructions[place.instruction].line} reads this from shared memory, by row and chunk of 16 bytes as it sees them: any swizzle is undone. A chunk has the color of the column of the array that it comes from.`),
      tiles.map((one) => this.tile(one, pages)));
  }

  /**
   * @param {Tile} tile
   * @param {Map<number, import("lab/run.js").Page>} pages
   */
  tile(tile, pages) {
    const each = Math.max(1, 16 / sizeOf(this.typeOf(tile)));
    const wrong = outliers(tile, each);
    const total = tile.sources.filter(Boolean).length;
    const cells = [];
    for (let row = 0; row < tile.rows; row++) {
      cells.push(h("b", {}, tile.operand === "D" ? `${row >> 3}.${row & 7}` : row));
      for (let chunk = 0; chunk < tile.chunks; chunk++) cells.push(this.chunk(tile, row, chunk, wrong, pages, each));
    }
    const array = tile.sources.find(Boolean);
    const name = array ? this.run.info.arrays[array[0]].name : "";
    const verdict = !total ? null : wrong.size
      ? h("p", { class: "verdict bad", id: `verdict-${tile.operand}` }, `${wrong.size} of ${total} chunks do not come from where their neighbours do: columns of `, h("code", {}, name), " are mixed up.")
      : h("p", { class: "verdict good", id: `verdict-${tile.operand}` }, "All chunks are in the order of ", h("code", {}, name), ".");
    return h("section", { class: "tile", "data-operand": tile.operand },
      h("h3", {}, `${tile.operand === "D" ? "Rows" : tile.operand}, ${tile.rows} × ${tile.chunks} chunks of ${this.typeOf(tile)}`),
      h("p", { class: "note" }, tile.about), verdict,
      h("div", { class: "tile-grid", style: `--chunks:${tile.chunks}` }, cells));
  }

  /** The type of elements: of the array, where the instruction does not say. @param {Tile} tile */
  typeOf(tile) {
    const array = tile.sources.find(Boolean);
    return tile.type.startsWith("b") && tile.type !== "bf16" && array ? this.run.info.arrays[array[0]].dtype || tile.type : tile.type;
  }

  /**
   * @param {Tile} tile
   * @param {number} row
   * @param {number} chunk
   * @param {Set<number>} wrong
   * @param {Map<number, import("lab/run.js").Page>} pages
   * @param {number} each
   */
  chunk(tile, row, chunk, wrong, pages, each) {
    const index = row * tile.chunks + chunk;
    const address = tile.addresses[index];
    const source = tile.sources[index];
    const page = pages.get(Math.floor(address / this.run.info.page));
    const type = this.typeOf(tile);
    const values = [];
    if (page) {
      for (let at = 0; at < each; at++) {
        values.push(number(type, page.view, address - page.base + at * sizeOf(type)));
      }
    }
    const name = source ? `${this.run.info.arrays[source[0]].name}[${source.slice(1, -1).join(", ")}${source.length > 2 ? ", " : ""}${source[source.length - 1]}:${source[source.length - 1] + each}]` : "";
    return h("button", {
      type: "button", class: `chunk ${source ? "" : "unknown"} ${wrong.has(index) ? "wrong" : ""}`, style: `--hue:${hueOf(tile, index)}`,
      "data-tip": `${tile.operand} row ${row}, chunk ${chunk}\nshared memory, byte ${address}${name ? `\nfrom ${name}` : ""}\n${values.map((one) => (typeof one === "number" ? float(one) : String(one))).join("  ")}`,
      onclick: () => this.state.set({ tab: "origin", subject: { origin: `origin/memory/shared/${this.run.blockOf(this.state.now.warp)}/${address}/4/${this.state.now.position}` } }),
    }, h("span", { class: "from" }, name || "?"), h("span", { class: "first" }, typeof values[0] === "number" ? brief(values[0]) : ""));
  }
}

/**
 * The color of a chunk: that of the column that it comes from.
 * @param {Tile} tile
 * @param {number} index
 */
export function hueOf(tile, index) {
  const source = tile.sources[index];
  const column = source ? source[source.length - 1] : index % tile.chunks;
  return (Math.floor(column / (source ? 8 : 1)) * 67 + (tile.operand === "B" ? 30 : 0)) % 360;
}

/**
 * Chunks that do not come from where most chunks of their matrix suggest: the same row and column further.
 * @param {Tile} tile
 * @param {number} each elements of a chunk
 */
export function outliers(tile, each) {
  /** @type {Set<number>} */
  const found = new Set();
  const rows = tile.operand === "D" ? 8 : tile.rows;
  for (let top = 0; top < tile.rows; top += rows) {
    /** @type {Map<string, number[]>} */
    const shifts = new Map();
    for (let row = top; row < Math.min(top + rows, tile.rows); row++) {
      for (let chunk = 0; chunk < tile.chunks; chunk++) {
        const index = row * tile.chunks + chunk;
        const source = tile.sources[index];
        if (!source) continue;
        const [across, down] = [source[source.length - 1], source.length > 2 ? source[source.length - 2] : 0];
        const key = `${source[0]}/${down - (row - top)}/${across - chunk * each}`;
        shifts.set(key, [...(shifts.get(key) ?? []), index]);
      }
    }
    const lists = [...shifts.values()].sort((one, other) => other.length - one.length);
    for (const list of lists.slice(1)) for (const index of list) found.add(index);
  }
  return found;
}
