/** The source: lines with how often they ran, where each warp is, findings, and SASS beside them. */

import { choice, fill, h, Rows } from "lab/dom.js";
import { grouped } from "lab/format.js";
import { latest } from "lab/state.js";

const HEIGHT = 20;
const WORDS = /(\/\/.*$)|("[^"]*")|(%[\w$.]+)|(@!?%[\w$]+)|(\.[a-z]\w*(?:::\w+)*)|(\b0[xXfFdD][0-9a-fA-F]+\b|\b\d+\b)|([A-Za-z_$][\w$]*)/g;
const CLASSES = ["comment", "string", "register", "guard", "part", "number", "word"];

/**
 * @param {string} text
 * @returns {Array<Node | string>}
 */
export function colored(text) {
  const found = [];
  let last = 0;
  let first = true;
  for (const match of text.matchAll(WORDS)) {
    const at = match.index ?? 0;
    if (at > last) found.push(text.slice(last, at));
    const kind = CLASSES[match.slice(1).findIndex((one) => one !== undefined)];
    const isOpcode = kind === "word" && first;
    if (kind === "word" || kind === "part") first = false;
    found.push(h("span", { class: isOpcode ? "c-opcode" : `c-${kind}` }, match[0]));
    last = at + match[0].length;
  }
  if (last < text.length) found.push(text.slice(last));
  return found;
}

export class Code {
  /**
   * @param {HTMLElement} element
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(element, run, state) {
    this.run = run;
    this.state = state;
    this.file = "";
    this.withSass = false;
    /** @type {Map<number, string[]> | null} */
    this.sass = null;
    /** @type {Map<number, import("lab/run.js").Place[]>} */
    this.warps = new Map();
    this.current = 0;
    this.most = Math.max(1, ...Object.values(run.info.counts).map((one) => one[0]));
    this.bySource = sourceLines(run);
    this.rows = new Rows(HEIGHT, (index) => this.line(index), { class: "code-rows", tabindex: 0, "aria-label": "Lines" }, (index) => this.sign(index));
    this.rows.element.addEventListener("click", (event) => this.clicked(event));
    this.head = h("div", { class: "pane-head" });
    this.element = element;
    fill(element, this.head, this.rows.element);
    if (run.info.sources.length) this.file = run.info.sources[0].file;
    this.resize();
    this.update = latest((now) => run.places(run.blockOf(now.warp), now.position), (places, now) => this.show(places, now), () => {});
    state.listen((now) => this.update(now));
    this.update(state.now);
  }

  get lines() {
    const source = this.run.info.sources.find((/** @type {any} */ one) => one.file === this.file);
    return source ? source.text.split("\n") : this.run.lines;
  }

  resize() {
    this.shownLines = this.lines;
    /** @type {Array<{ line: number, sass: string }>} what each row shows: a line, or more SASS of it */
    const rows = [];
    this.shownLines.forEach((/** @type {string} */ _, /** @type {number} */ index) => {
      const sass = this.withSass && !this.file ? this.sass?.get(index + 1) ?? [] : [];
      rows.push({ line: index + 1, sass: sass[0] ?? "" });
      for (const more of sass.slice(1)) rows.push({ line: -(index + 1), sass: more });
    });
    this.shownRows = rows;
    this.rowOf = new Map(rows.map((one, index) => [one.line, index]));
    this.element.classList.toggle("with-sass", this.withSass && !this.file);
    this.rows.resize(this.shownRows.length);
    this.drawHead();
  }

  drawHead() {
    const { sources, name } = this.run.info;
    /** @type {Array<[string, string]>} */
    const files = [["", name.split("/").pop() || "PTX"], ...sources.map((/** @type {any} */ one) => [one.file, one.file.split("/").pop()])];
    fill(this.head,
      files.length > 1
        ? choice("File", files, this.file, (file) => { this.file = file; this.resize(); this.rows.show(this.rowOfLine(this.current)); })
        : h("span", { class: "file" }, files[0][1]),
      h("span", { class: "space" }),
      h("button", {
        type: "button", class: `toggle ${this.withSass ? "on" : ""}`, "aria-pressed": this.withSass, id: "sass",
        disabled: Boolean(this.file), "data-tip": "What ptxas makes of each line", onclick: () => this.toggleSass(),
      }, "SASS"));
  }

  async toggleSass() {
    this.withSass = !this.withSass;
    if (this.withSass && !this.sass) {
      try {
        const found = await this.run.source.get("sass");
        this.sass = new Map(Object.entries(found.lines).map(([line, texts]) => [Number(line), /** @type {string[]} */ (texts)]));
        this.sassTitle = found.title;
      } catch (wrong) {
        this.withSass = false;
        this.sassProblem = String(wrong instanceof Error ? wrong.message : wrong);
        this.head.querySelector("#sass")?.setAttribute("data-tip", this.sassProblem);
        return;
      }
    }
    document.documentElement.style.setProperty("--code", this.withSass ? "66%" : "46%");
    this.resize();
    this.rows.show(this.rowOfLine(this.current));
  }

  /** @param {number} line of the PTX */
  rowOfLine(line) {
    const shown = this.file ? this.lineInFile(line) : line;
    return this.rowOf?.get(shown) ?? 0;
  }

  /** The line of the shown file that a line of the PTX was compiled from. @param {number} line */
  lineInFile(line) {
    return this.bySource.lines.get(`${this.file}:${line}`) ?? 0;
  }

  /**
   * @param {import("lab/run.js").Place[]} places
   * @param {import("lab/state.js").Looked} now
   */
  show(places, now) {
    this.warps = new Map();
    for (const place of places) {
      const at = place.instruction >= 0 ? place.instruction : -1;
      if (at < 0) continue;
      const line = this.shownLine(this.run.instructions[at].line);
      this.warps.set(line, [...(this.warps.get(line) ?? []), place]);
      if (place.warp === now.warp) this.current = this.run.instructions[at].line;
    }
    const own = places.find((one) => one.warp === now.warp);
    if (own && own.instruction < 0 && own.instructionBefore >= 0) this.current = this.run.instructions[own.instructionBefore].line;
    this.ended = Boolean(own?.ended);
    this.rows.refresh();
    this.rows.show(this.rowOfLine(this.current));
  }

  /** @param {number} line of the PTX */
  shownLine(line) {
    return this.file ? this.lineInFile(line) : line;
  }

  /** What a row shows. @param {number} index */
  sign(index) {
    const { line, sass } = this.shownRows?.[index] ?? { line: 0, sass: "" };
    const { marks, warp } = this.state.now;
    const here = (this.warps.get(line) ?? []).map((one) => one.warp);
    const current = line === this.shownLine(this.current) ? (this.ended ? "ended" : "current") : "";
    const mark = this.file ? "" : marks?.lines.get(line);
    return `${this.file}|${line}|${this.withSass}|${sass}|${here}|${here.includes(warp) ? warp : ""}|${current}|${mark ? marks?.kind + mark : ""}`;
  }

  /** @param {number} index */
  line(index) {
    const { line, sass } = this.shownRows?.[index] ?? { line: 0, sass: "" };
    if (line < 0) return h("div", { class: "line more" }, h("span", { class: "sass" }, sass));
    const { marks, warp } = this.state.now;
    const counts = this.countsOf(line);
    const here = this.warps.get(line) ?? [];
    const isCurrent = line === this.shownLine(this.current);
    const mark = this.file ? undefined : marks?.lines.get(line);
    const finding = this.file ? undefined : this.run.findings.find((one) => one.line === line);
    const heat = counts ? Math.round(100 * Math.log1p(counts[0]) / Math.log1p(this.most)) : 0;
    return h("div", {
      class: `line ${isCurrent ? (this.ended ? "ended" : "current") : ""} ${counts ? "runs" : ""} ${mark ? `marked ${marks?.kind}` : ""} ${finding ? finding.level : ""}`,
      "data-line": line, "aria-current": isCurrent || undefined,
    },
    h("span", {
      class: "count", style: `--heat:${heat}%`,
      "data-tip": counts ? `executed by ${grouped(counts[0])} warps, ${grouped(counts[1])} threads` : undefined,
    }, counts ? short(counts[0]) : ""),
    h("span", { class: "number" }, line),
    h("span", { class: "here" }, here.slice(0, 6).map((one) => h("i", {
      class: one.warp === warp ? "own" : "", "data-warp": one.warp, "data-tip": `${this.run.nameOf(one.warp)} executes this next`,
    }, this.run.warpInBlock(one.warp))), here.length > 6 ? h("i", { class: "more" }, `+${here.length - 6}`) : null),
    h("span", { class: "text" }, h("span", { class: "words" }, colored(this.shownLines?.[line - 1] ?? "")),
    finding ? h("button", { type: "button", class: `flag ${finding.level}`, "data-finding": this.run.findings.indexOf(finding), "data-tip": finding.message }, finding.code) : null,
    mark && marks?.kind === "finding" ? h("span", { class: "why", "data-tip": mark }, mark) : null),
    this.withSass && !this.file ? h("span", { class: "sass" }, sass) : null);
  }

  /** @param {number} line */
  countsOf(line) {
    if (!this.file) return this.run.info.counts[line];
    return this.bySource.counts.get(`${this.file}:${line}`);
  }

  /** @param {MouseEvent} event */
  async clicked(event) {
    const target = event.target instanceof Element ? event.target : null;
    const finding = target?.closest("[data-finding]")?.getAttribute("data-finding");
    if (finding !== null && finding !== undefined) {
      this.state.set({ tab: "findings", subject: { finding: Number(finding) } });
      return;
    }
    const warp = target?.closest("[data-warp]")?.getAttribute("data-warp");
    if (warp !== null && warp !== undefined) {
      this.state.set({ warp: Number(warp) });
      return;
    }
    const line = Number(target?.closest(".line")?.getAttribute("data-line") ?? 0);
    if (line > 0 && !window.getSelection()?.toString()) await this.goTo(line, event.shiftKey);
  }

  /**
   * Go to the next time that the warp executes a line, or the time before; else that any warp does.
   * @param {number} line
   * @param {boolean} [backwards]
   */
  async goTo(line, backwards = false) {
    const lines = this.file ? this.bySource.ptx.get(`${this.file}:${line}`) ?? [] : [line];
    const found = await Promise.all(lines.map((one) => this.run.source.get(`line/${one}`)));
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

/** Lines of sources for lines of the PTX, and the other way. @param {import("lab/run.js").Run} run */
function sourceLines(run) {
  /** @type {Map<string, number>} */
  const lines = new Map();
  /** @type {Map<string, number[]>} */
  const ptx = new Map();
  /** @type {Map<string, number[]>} */
  const counts = new Map();
  for (const one of run.instructions) {
    if (!one.source) continue;
    const [file, line] = one.source;
    lines.set(`${file}:${one.line}`, line);
    const key = `${file}:${line}`;
    ptx.set(key, [...(ptx.get(key) ?? []), one.line]);
    const given = run.info.counts[one.line];
    const known = counts.get(key);
    if (given && (!known || known[0] < given[0])) counts.set(key, given);
  }
  return { lines, ptx, counts };
}

/** @param {number} count */
function short(count) {
  if (count < 10_000) return String(count);
  return count < 1e6 ? `${Math.round(count / 1e3)}k` : `${(count / 1e6).toFixed(1)}M`;
}
