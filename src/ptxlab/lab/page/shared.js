/** Shared memory as banks and rows of 128 bytes: what is there, what the next instruction accesses, and its conflicts. */

import { BANKS, paintWords } from "lab/bank_row.js";
import { choice, fill, h, Rows, setText, tipsIn } from "lab/dom.js";
import { grouped, lanesOf, number, text } from "lab/format.js";
import { listen } from "lab/palette.js";
import { select } from "lab/registers.js";
import { latest } from "lab/state.js";
import { hueOf } from "lab/tiles.js";

const ROW = 128;
const BESIDE = 64 + 1 + 14; // pixels of a row that are not its words
const AS = ["b32", "f32", "s32", "f16x2", "bf16x2", "hex"];

/** @typedef {import("lab/run.js").Access} Access */
/** @typedef {import("lab/bank_row.js").Word} Word */

export class Shared {
  title = "Shared";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    this.run = run;
    this.state = state;
    const types = run.info.arrays.map((/** @type {any} */ one) => one.dtype);
    this.as = types.includes("bfloat16") ? "bf16x2" : types.includes("float16") ? "f16x2" : types.includes("float32") ? "f32" : "b32";
    this.wide = "colors";
    /** @type {Map<number, import("lab/run.js").Page>} */
    this.pages = new Map();
    this.followed = -2;
    /** @type {Map<number, number[]>} lanes by the word that they access */
    this.accessed = new Map();
    /** @type {Map<number, any>} */
    this.tile = new Map();
    this.head = h("div", { class: "tools" });
    this.about = h("div", { class: "about" });
    this.banks = h("div", { class: "banks" });
    /** @type {Rows} */
    this.rows = new Rows(20, (index, old) => this.row(index, old), { class: "bank-rows" }, (index) => this.sign(index));
    this.restyled = 0;
    listen(() => { this.restyled++; this.rows.refresh(); });
    tipsIn(this.rows.element, (target, event) => this.tip(this.addressAt(target, event)));
    this.rows.element.addEventListener("click", (event) => this.clicked(event));
    this.rows.element.addEventListener("scroll", () => this.update(this.state.now), { passive: true });
    this.element = h("div", { class: "view shared" }, this.head, this.about, this.banks, this.rows.element);
    this.drawHead();
    this.rows.resize(Math.ceil(run.info.shared.size / ROW));
    this.update = latest((now) => this.load(now), (found, now) => this.show(found, now), (wrong) => fill(this.about, h("p", { class: "problem" }, wrong.message)));
  }

  /** @param {import("lab/state.js").Looked} now */
  async load(now) {
    const block = this.run.blockOf(now.warp);
    const at = this.run.within(block, now.position);
    const [place] = await Promise.all([this.run.place(now.warp, now.position), this.pagesOf(block, at, this.rows.range), this.run.accesses(at)]);
    const [all, tiles] = await Promise.all([this.run.accesses(place.step),
      place.step >= 0 && this.run.instructions[place.instruction].tile ? this.run.source.get(`tiles/${place.step}`).catch(() => []) : []]);
    const accesses = all.filter((one) => one.owners.includes(block));
    let [top, bottom] = this.rows.range;
    let isMoved = false;
    if (place.step !== this.followed) {
      this.followed = place.step;
      this.accesses = accesses;
      const first = Math.min(...accesses.flatMap((one) => one.addresses), ...tiles.flatMap((/** @type {any} */ one) => one.addresses.filter((/** @type {number} */ address) => address >= 0)));
      isMoved = Number.isFinite(first) && !this.isSeen(first);
      if (isMoved) [top, bottom] = [Math.floor(first / ROW) * 20 - 40, Math.floor(first / ROW) * 20 - 40 + bottom - top];
    }
    return { place, accesses, tiles, pages: await this.pagesOf(block, at, [top, bottom]), top: isMoved ? top : null };
  }

  /**
   * The pages of a part of the rows, by their numbers.
   * @param {number} block
   * @param {number} at
   * @param {number[]} range
   */
  async pagesOf(block, at, range) {
    const each = this.run.info.page;
    const [top, past] = range.map((pixels) => Math.floor((pixels / 20) * ROW / each));
    const last = Math.ceil(this.run.info.shared.size / each) - 1;
    const numbers = [];
    for (let page = Math.max(top, 0); page <= Math.min(past, last); page++) numbers.push(page);
    const pages = await Promise.all(numbers.map((page) => this.run.page("shared", block, page, at)));
    return new Map(numbers.map((page, index) => [page, pages[index]]));
  }

  /** @param {number} address */
  isSeen(address) {
    const at = Math.floor(address / ROW) * 20;
    const [top, bottom] = this.rows.range;
    return at >= top && at + 20 <= bottom;
  }

  /**
   * @param {{ place: import("lab/run.js").Place, accesses: Access[], tiles: any[], pages: Map<number, import("lab/run.js").Page>, top: number | null }} found
   * @param {import("lab/state.js").Looked} now
   */
  show({ place, accesses, tiles, pages, top }, now) {
    this.pages = pages;
    this.block = this.run.blockOf(now.warp);
    this.accessed = words(accesses);
    this.tile = new Map();
    for (const tile of tiles) {
      tile.addresses.forEach((/** @type {number} */ address, /** @type {number} */ index) => {
        const hue = hueOf(tile, index);
        for (let word = 0; word < 16; word += 4) this.tile.set(address + word, { tile, row: Math.floor(index / tile.chunks), chunk: index % tile.chunks, hue });
      });
    }
    this.describe(place, accesses, tiles);
    this.range = this.rangeOf();
    this.drawBanks(accesses);
    if (top !== null) this.rows.move(top);
    this.rows.refresh();
  }

  drawHead() {
    fill(this.head,
      choice("Cells", [["colors", "Overview"], ["values", "Values"]], this.wide, (value) => {
        this.wide = value;
        this.element.classList.toggle("wide", value === "values");
        this.drawHead();
        this.update(this.state.now);
      }),
      h("label", {}, "as ", select(AS, this.as, (value) => { this.as = value; this.update(this.state.now); })),
      h("span", { class: "space" }),
      this.run.info.shared.variables.slice(0, 8).map((/** @type {any} */ one) => h("button", {
        type: "button", class: "link", "data-tip": `${one.type}, from byte ${one.start}`, onclick: () => { this.rows.scroll(Math.floor(one.start / ROW) * 20); },
      }, one.name)));
  }

  /**
   * @param {import("lab/run.js").Place} place
   * @param {Access[]} accesses
   * @param {any[]} tiles
   */
  describe(place, accesses, tiles) {
    const parts = [];
    for (const one of accesses) {
      const { wavefronts, least } = conflicts(one);
      const verdict = wavefronts > least ? h("b", { class: "bad" }, `${wavefronts / least}-way bank conflict`) : h("b", { class: "good" }, "no bank conflict");
      parts.push(h("p", { id: "conflict" }, `${one.kind === "load" ? "Loads" : one.kind === "store" ? "Stores" : "Updates"} ${one.size} bytes in ${one.lanes.length} lanes: `, verdict,
        h("span", { class: "note" }, ` ${wavefronts} wavefront${wavefronts > 1 ? "s" : ""}, at least ${least}`)));
    }
    for (const one of tiles) if (one.operand !== "D") parts.push(h("p", {}, `${one.operand}: ${one.about} `, h("button", { type: "button", class: "link", onclick: () => this.state.set({ tab: "tiles" }) }, "as a matrix")));
    if (!parts.length) parts.push(h("p", { class: "note" }, place.ended ? "The warp has ended." : "The next instruction does not access shared memory."));
    fill(this.about, parts);
  }

  /** How many words of each bank are accessed. @param {Access[]} accesses */
  drawBanks(accesses) {
    const counts = new Array(BANKS).fill(0);
    for (const one of accesses) conflicts(one).counts.forEach((count, bank) => { counts[bank] = Math.max(counts[bank], count); });
    const most = Math.max(1, ...counts);
    if (counts.join() === this.shownCounts) return;
    this.shownCounts = counts.join();
    fill(this.banks, h("div", { class: "bank-row head" }, h("b", {}, "bank"), counts.map((count, bank) => h("i", {
      class: count > 1 ? "bad" : "", "data-tip": `bank ${bank}: ${count} different words in one wavefront's worth of lanes`,
    }, h("u", { style: `height:${Math.round((12 * count) / most)}px` }), h("span", {}, bank % 4 ? "" : bank)))));
  }

  /** What colors are between: powers of two, so that few steps change them. */
  rangeOf() {
    let low = Infinity;
    let high = -Infinity;
    for (const page of this.pages.values()) {
      for (let at = 0; at + 4 <= page.data.length; at += 4) {
        if (!(page.known[at >> 3] >> (at & 7) & 1)) continue;
        const value = Number(number(kindOf(this.as), page.view, at));
        if (!Number.isFinite(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    const size = 2 ** Math.ceil(Math.log2(Math.max(Math.abs(low), Math.abs(high), 2 ** -24)));
    if (!Number.isFinite(size)) return { low: 0, span: 0 };
    return low < 0 ? { low: -size, span: 2 * size } : { low: 0, span: size };
  }

  /** What a row shows. @param {number} index */
  sign(index) {
    const page = this.pages.get(Math.floor((index * ROW) / this.run.info.page));
    if (!page) return "none";
    const start = index * ROW - page.base;
    const { low, span } = this.range ?? { low: 0, span: 0 };
    let found = `${this.as}|${this.wide}|${this.rows.wide}|${this.restyled}|${low}|${span}|${page.known.subarray(start >> 3, (start + ROW) >> 3).join()}|${page.data.subarray(start, start + ROW).join()}`;
    for (let address = index * ROW; address < (index + 1) * ROW; address += 4) {
      const lanes = this.accessed.get(address);
      const tile = this.tile.get(address);
      const write = page.last(address - page.base);
      if (lanes || tile || write) found += `|${address}:${lanes ?? ""}/${tile?.hue ?? ""}/${write?.asynchronous ?? ""}${write?.after === this.state.now.position - 1}`;
    }
    return found;
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const address = event.target instanceof Element ? this.addressAt(event.target, event) : -1;
    if (address >= 0) this.state.set({ tab: "origin", subject: { origin: `origin/memory/shared/${this.block}/${address}/4/${this.state.now.position}` } });
  }

  /**
   * The word at a pointer; -1 if there is none.
   * @param {Element} target
   * @param {MouseEvent} event
   */
  addressAt(target, event) {
    const own = target.closest("[data-address]")?.getAttribute("data-address");
    if (own) return Number(own);
    const row = target.closest("[data-row]");
    if (!row) return -1;
    const box = row.getBoundingClientRect();
    return Number(row.getAttribute("data-row")) + 4 * Math.max(0, Math.min(31, Math.floor((32 * (event.clientX - box.left)) / box.width)));
  }

  /**
   * @param {number} index
   * @param {HTMLElement | null} old
   */
  row(index, old) {
    const address = index * ROW;
    const page = this.pages.get(Math.floor(address / this.run.info.page));
    const words = Array.from({ length: BANKS }, (_, bank) => this.word(page, address + 4 * bank));
    if (this.wide === "values") {
      const row = h("div", { class: "bank-row" });
      row.innerHTML = `<b>${grouped(address)}</b>${words.map((word, bank) => this.cell(word, page, address + 4 * bank)).join("")}`; // numbers only: many elements at once
      return row;
    }
    const row = old?.querySelector("canvas") ? old : h("div", { class: "bank-row" }, h("b", {}), h("canvas", { class: "bank-cells", role: "img" }));
    const [start, canvas] = /** @type {[HTMLElement, HTMLCanvasElement]} */ ([...row.children]);
    setText(start, grouped(address));
    canvas.setAttribute("data-row", String(address));
    canvas.setAttribute("aria-label", said(address, words));
    paintWords(canvas, Math.max(BANKS, this.rows.wide - BESIDE), words);
    return row;
  }

  /** What is said of a cell. @param {number} address */
  tip(address) {
    const page = this.pages.get(Math.floor(address / this.run.info.page));
    if (!page || address < 0) return "";
    const at = address - page.base;
    const known = page.known[at >> 3] >> (at & 7) & 1;
    const [lanes, tile, write] = [this.accessed.get(address), this.tile.get(address), page.last(at)];
    return [`byte ${address}, bank ${(address / 4) % 32}`, known ? `${this.as} ${text(this.as, page.view, at, 4)}` : "never written",
      lanes ? `accessed by lane${lanes.length > 1 ? "s" : ""} ${lanes.join(", ")}` : "", tile ? `${tile.tile.operand}: row ${tile.row}, chunk ${tile.chunk}` : "",
      write ? `${write.asynchronous ? "landed" : "written"} at step ${write.after}, line ${this.run.instructions[write.instruction]?.line}` : ""].filter(Boolean).join("\n");
  }

  /**
   * What a word holds and what happens to it.
   * @param {import("lab/run.js").Page | undefined} page
   * @param {number} address
   * @returns {Word}
   */
  word(page, address) {
    const at = page ? address - page.base : 0;
    const inside = page !== undefined && at + 4 <= page.data.length;
    if (!inside) return { known: false, heat: 0, hue: null, lanes: undefined, isFresh: false, landed: false, inside };
    const known = Boolean(page.known[at >> 3] >> (at & 7) & 1);
    const write = page.last(at);
    const value = known ? Number(number(kindOf(this.as), page.view, at)) : NaN;
    const { low, span } = this.range ?? { low: 0, span: 0 };
    return {
      known, heat: Number.isFinite(value) ? Math.round(12 + 60 * (span > 0 ? (value - low) / span : 0)) : 0, inside,
      hue: this.tile.get(address)?.hue ?? null, lanes: this.accessed.get(address),
      isFresh: write !== undefined && write.after === this.state.now.position - 1, landed: Boolean(write?.asynchronous),
    };
  }

  /**
   * A word with its value, as HTML.
   * @param {Word} word
   * @param {import("lab/run.js").Page | undefined} page
   * @param {number} address
   */
  cell({ known, heat, hue, lanes, isFresh, landed, inside }, page, address) {
    if (!page || !inside) return '<i class="none"></i>';
    const kind = `${known ? "" : "unknown"} ${lanes ? "accessed" : ""} ${isFresh ? "fresh" : ""} ${hue === null ? "" : "in-tile"} ${landed ? "landed" : ""}`;
    const shown = known ? text(this.as, page.view, address - page.base, 4) : "";
    return `<i class="${kind}" style="${hue === null ? `--heat:${heat}%` : `--hue:${hue}`}" data-address="${address}">${shown}</i>`;
  }
}

/**
 * A row in words, for those who do not see it.
 * @param {number} address
 * @param {Word[]} words
 */
function said(address, words) {
  const lanes = words.reduce((mask, word) => (word.lanes ?? []).reduce((found, lane) => found | 1 << lane, mask), 0);
  const written = words.filter((word) => word.known).length;
  return `bytes ${address} to ${address + ROW - 1}: ${written} of ${BANKS} words written${lanes ? `, accessed by ${lanesOf(lanes)}` : ""}`;
}

/** The number type that colors are by. @param {string} as */
function kindOf(as) {
  return as === "f16x2" ? "f16" : as === "bf16x2" ? "bf16" : as === "hex" ? "u32" : as;
}

/** The words that lanes access. @param {Access[]} accesses */
function words(accesses) {
  /** @type {Map<number, number[]>} */
  const found = new Map();
  for (const one of accesses) {
    one.addresses.forEach((address, index) => {
      for (let at = address & ~3; at < address + one.size; at += 4) found.set(at, [...(found.get(at) ?? []), one.lanes[index]]);
    });
  }
  return found;
}

/**
 * Wavefronts of an access: lanes go together as many as 128 bytes have room for; of each bank one word a wavefront.
 * @param {Access} access
 */
export function conflicts(access) {
  const together = Math.max(1, Math.min(32, Math.floor(128 / Math.max(access.size, 4))));
  const counts = new Array(32).fill(0);
  let wavefronts = 0;
  let least = 0;
  for (let first = 0; first < 32; first += together) {
    /** @type {Set<number>[]} */
    const banks = Array.from({ length: 32 }, () => new Set());
    access.lanes.forEach((lane, index) => {
      if (lane < first || lane >= first + together) return;
      for (let at = access.addresses[index] & ~3; at < access.addresses[index] + access.size; at += 4) banks[(at >> 2) & 31].add(at);
    });
    const sizes = banks.map((one) => one.size);
    const most = Math.max(...sizes);
    sizes.forEach((size, bank) => { counts[bank] = Math.max(counts[bank], size); });
    wavefronts += most;
    least += most ? 1 : 0;
  }
  return { counts, wavefronts, least: Math.max(least, 1) };
}
