/** A text with how often its lines ran, where each warp is, and findings: the PTX, with SASS beside it, or what it was compiled from. */

import { h, Rows } from "lab/dom.js";
import { grouped } from "lab/format.js";

const HEIGHT = 20;
const KEPT = 400; // lines that stay laid out
const REST = /("[^"]*")|(%[\w$.]+)|(@!?%[\w$]+)|(\.[a-z]\w*(?:::\w+)*)|(\b0[xXfFdD][0-9a-fA-F]+\b|\b\d+\b)|([A-Za-z_$][\w$]*)/.source;
const WORDS = new RegExp(`(\\/\\/.*$)|${REST}`, "g");
const PYTHON = new RegExp(`(#.*$)|${REST}`, "g");
const CLASSES = ["comment", "string", "register", "guard", "part", "number", "word"];

/**
 * @param {string} text
 * @param {string} [file] of which it is a line; by default PTX
 * @returns {Array<Node | string>}
 */
export function colored(text, file = "") {
  const found = [];
  let last = 0;
  let first = true;
  for (const match of text.matchAll(/\.(py|md)$/.test(file) ? PYTHON : WORDS)) {
    const at = match.index ?? 0;
    if (at > last) found.push(text.slice(last, at));
    const kind = CLASSES[match.slice(1).findIndex((one) => one !== undefined)];
    const isOpcode = kind === "word" && first;
    if (kind === "word" || kind === "part") first = false;
    found.push(kind === "word" && !isOpcode ? match[0] : h("span", { class: isOpcode ? "c-opcode" : `c-${kind}` }, match[0]));
    last = at + match[0].length;
  }
  if (last < text.length) found.push(text.slice(last));
  return found;
}

/** The lines of a file and those of the PTX that were compiled from them; of the PTX itself, `file` is empty. */
export class FileLines {
  /**
   * @param {import("lab/run.js").Run} run
   * @param {string} file
   */
  constructor(run, file) {
    this.run = run;
    this.file = file;
    this.isPtx = file === "";
    /** @type {string[]} */
    this.texts = this.isPtx ? run.lines : run.info.sources.find((/** @type {any} */ one) => one.file === file).text.split("\n");
    /** @type {Map<number, number>} by lines of the PTX */
    this.known = new Map();
    /** @type {Map<number, number[]>} by lines of the file */
    this.compiled = new Map();
    for (const one of run.instructions) {
      const line = this.isPtx ? one.line : one.sources?.find(([name]) => name === file)?.[1];
      if (line === undefined) continue;
      this.known.set(one.line, line);
      this.compiled.set(line, [...(this.compiled.get(line) ?? []), one.line]);
    }
  }

  /** The line that shows a line of the PTX; 0 if there is none. @param {number} line */
  shown(line) {
    return this.isPtx ? line : this.known.get(line) ?? 0;
  }

  /** How many warps and threads have executed a line: of several instructions, the one that most have. @param {number} line */
  counts(line) {
    const all = (this.isPtx ? [line] : this.compiled.get(line) ?? []).map((one) => this.run.info.counts[one]).filter(Boolean);
    return all.length ? all.reduce((one, other) => (other[0] > one[0] ? other : one)) : undefined;
  }
}

export class Listing {
  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   * @param {string} file
   * @param {{ line: (line: number, backwards: boolean) => void }} clicked
   */
  constructor(run, state, file, clicked) {
    this.run = run;
    this.state = state;
    this.file = file;
    this.clicks = clicked;
    this.lines = new FileLines(run, file);
    /** @type {Map<number, string[]> | null} */
    this.sass = null;
    /** @type {Map<number, import("lab/run.js").Place[]>} by the lines that are shown */
    this.warps = new Map();
    this.current = 0;
    this.ended = false;
    /** @type {Set<number>} */
    this.related = new Set();
    /** @type {import("lab/state.js").Marks | null} */
    this.marks = null;
    /** @type {Map<number, string>} */
    this.marked = new Map();
    this.most = Math.max(1, ...Object.values(run.info.counts).map((one) => one[0]));
    /** @type {Map<number, import("lab/run.js").Finding>} */
    this.findings = new Map();
    for (const one of [...run.findings].reverse()) this.findings.set(this.lines.shown(one.line), one);
    this.rows = new Rows(HEIGHT, (index) => this.line(index), { class: "code-rows", tabindex: 0, "aria-label": file || "PTX", "data-file": file }, (index) => this.sign(index), KEPT);
    this.rows.element.addEventListener("click", (event) => this.clicked(event));
    this.element = this.rows.element;
    this.resize();
  }

  /** @param {Map<number, string[]> | null} sass by lines */
  beside(sass) {
    this.sass = sass;
    this.element.classList.toggle("with-sass", sass !== null);
    this.resize();
  }

  resize() {
    /** @type {Array<{ line: number, sass: string }>} what each row shows: a line, or more SASS of it */
    const rows = [];
    this.lines.texts.forEach((_, index) => {
      const sass = this.sass?.get(index + 1) ?? [];
      rows.push({ line: index + 1, sass: sass[0] ?? "" });
      for (const more of sass.slice(1)) rows.push({ line: -(index + 1), sass: more });
    });
    this.shownRows = rows;
    this.rowOf = new Map(rows.map((one, index) => [one.line, index]));
    this.rows.resize(rows.length);
  }

  /**
   * @param {import("lab/run.js").Place[]} places
   * @param {{ line: number, ended: boolean, related: Set<number> }} current lines of the PTX: the next one of the chosen warp, and those that belong to it
   */
  show(places, current) {
    this.warps = new Map();
    for (const place of places) {
      if (place.instruction < 0) continue;
      const line = this.lines.shown(this.run.instructions[place.instruction].line);
      if (line) this.warps.set(line, [...(this.warps.get(line) ?? []), place]);
    }
    this.current = this.lines.shown(current.line);
    this.ended = current.ended;
    this.related = this.lines.isPtx ? current.related : new Set();
    if (this.current) this.rows.aim(this.rowOf?.get(this.current) ?? 0);
    this.rows.refresh();
  }

  /** Why a line is marked. @param {number} line */
  mark(line) {
    const { marks } = this.state.now;
    if (!marks) return undefined;
    if (this.lines.isPtx) return marks.lines.get(line);
    if (this.marks !== marks) {
      this.marks = marks;
      this.marked = new Map([...marks.lines].reverse().map(([ptx, text]) => [this.lines.shown(ptx), text]));
    }
    return this.marked.get(line);
  }

  /** What a row shows. @param {number} index */
  sign(index) {
    const { line, sass } = this.shownRows?.[index] ?? { line: 0, sass: "" };
    const { marks, warp } = this.state.now;
    const here = (this.warps.get(line) ?? []).map((one) => one.warp);
    const current = line === this.current ? (this.ended ? "ended" : "current") : this.related.has(line) ? "related" : "";
    const mark = this.mark(line);
    return `${line}|${sass}|${here}|${here.includes(warp) ? warp : ""}|${current}|${mark === undefined ? "" : marks?.kind + mark}`;
  }

  /** @param {number} index */
  line(index) {
    const { line, sass } = this.shownRows?.[index] ?? { line: 0, sass: "" };
    if (line < 0) return h("div", { class: "line more" }, h("span", { class: "sass" }, sass));
    const { marks, warp } = this.state.now;
    const counts = this.lines.counts(line);
    const here = [...this.warps.get(line) ?? []].sort((one, other) => Number(other.warp === warp) - Number(one.warp === warp));
    const most = fitting(here.map((one) => this.run.warpInBlock(one.warp)));
    const isCurrent = line === this.current;
    const mark = this.mark(line);
    const finding = this.findings.get(line);
    const heat = counts ? Math.round(100 * Math.log1p(counts[0]) / Math.log1p(this.most)) : 0;
    return h("div", {
      class: `line ${isCurrent ? (this.ended ? "ended" : "current") : this.related.has(line) ? "related" : ""} ${counts ? "runs" : ""} ${mark === undefined ? "" : `marked ${marks?.kind}`} ${finding ? finding.level : ""}`,
      "data-line": line, "aria-current": isCurrent || undefined,
    },
    h("span", {
      class: "count", style: `--heat:${heat}%`,
      "data-tip": counts ? `executed by ${grouped(counts[0])} warps, ${grouped(counts[1])} threads` : undefined,
    }, counts ? short(counts[0]) : ""),
    h("span", { class: "number" }, line),
    h("span", { class: "here" }, here.slice(0, most).map((one) => h("i", {
      class: one.warp === warp ? "own" : "", "data-warp": one.warp, "data-tip": `${this.run.nameOf(one.warp)} executes this next`,
    }, this.run.warpInBlock(one.warp))), here.length > most ? h("i", { class: "more" }, `+${here.length - most}`) : null),
    h("span", { class: "text" }, h("span", { class: "words" }, colored(this.lines.texts[line - 1] ?? "", this.file)),
    finding ? h("button", { type: "button", class: `flag ${finding.level}`, "data-finding": this.run.findings.indexOf(finding), "data-tip": finding.message }, finding.code) : null,
    mark && marks?.kind === "finding" ? h("span", { class: "why", "data-tip": mark }, mark) : null),
    this.sass ? h("span", { class: "sass" }, sass) : null);
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const target = event.target instanceof Element ? event.target : null;
    const finding = target?.closest("[data-finding]")?.getAttribute("data-finding");
    const warp = target?.closest("[data-warp]")?.getAttribute("data-warp");
    const line = Number(target?.closest(".line")?.getAttribute("data-line") ?? 0);
    if (finding) this.state.set({ tab: "findings", subject: { finding: Number(finding) } });
    else if (warp) this.state.set({ warp: Number(warp) });
    else if (line > 0 && !window.getSelection()?.toString()) this.clicks.line(line, event.shiftKey);
  }
}

/** How many of some warps there is space for, beside the number of the others. @param {number[]} warps */
function fitting(warps) {
  const all = Math.max(...warps) < 10 ? 3 : 2;
  return warps.length > all ? all - 1 : all;
}

/** @param {number} count */
function short(count) {
  if (count < 10_000) return String(count);
  return count < 1e6 ? `${Math.round(count / 1e3)}k` : `${(count / 1e6).toFixed(1)}M`;
}
