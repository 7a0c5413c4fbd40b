/** The timeline: what warps, copies and tensor cores do when; a click goes there. */

import { fill, h } from "lab/dom.js";
import { grouped } from "lab/format.js";
import { cleared, listen, styled } from "lab/palette.js";

export const ROW = 17;
export const NAMES = 104;
export const TOP = 20; // of the first track
const TILE = 512;
const [RUNS, WAITS, OPERATION, MANY, PHASED] = [0, 1, 2, 3, 4];
const LOWEST = 24; // steps that are shown at least

/** @typedef {{ name: string, kind: string, warp: number, launch?: number, periods: [number, number, number, number][] }} Track */

export class Timeline {
  /**
   * @param {HTMLElement} element
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   * @param {any} [node] the launches that ran at the same time, if it is of all of them
   */
  constructor(element, run, state, node) {
    this.run = run;
    /** @type {import("lab/node.js").Node} */
    this.node = node;
    this.state = state;
    this.block = -1;
    this.loaded = -1; // the block whose tracks are known
    this.from = 0;
    this.to = Math.max(run.count, 1);
    /** @type {Track[]} */
    this.tracks = [];
    this.asked = "";
    /** @type {Promise<any>} until the tracks and the ticks of what was chosen last are there */
    this.following = Promise.resolve();
    this.loading = Promise.resolve();
    this.pending = 0;
    /** @type {number[]} */
    this.ticks = [];
    this.tickLine = 0;
    this.tickWarp = -1;
    this.marked = 0; // how often ticks were asked for
    this.near = ""; // the block and the window of steps where they were
    this.canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { tabindex: 0, "aria-label": "Timeline: click to go there, scroll to zoom, drag to move" }));
    this.hint = h("span", { class: "hint" });
    this.tools = h("div", { class: "timeline-tools" },
      h("button", { type: "button", onclick: () => this.zoom(0.5), "aria-label": "Zoom in", "data-tip": "Zoom in (+)" }, "+"),
      h("button", { type: "button", onclick: () => this.zoom(2), "aria-label": "Zoom out", "data-tip": "Zoom out (−)" }, "−"),
      h("button", { type: "button", onclick: () => this.fit(), "data-tip": "The whole block (0)" }, "fit"));
    this.marks = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "marks", "aria-hidden": "true" }));
    this.scroll = h("div", { class: "timeline-scroll" }, h("div", { class: "timeline-canvases" }, this.canvas, this.marks));
    fill(element, this.scroll, this.tools, this.hint);
    this.element = element;
    this.listen();
    this.isNarrow = window.matchMedia("(max-width: 820px)");
    this.wide = this.scroll.clientWidth;
    new ResizeObserver(() => { this.wide = this.scroll.clientWidth; this.loading = this.load(); this.draw(); }).observe(element);
    this.shown = ""; // what the tracks were painted for
    /** @type {Track[] | null} */
    this.shownTracks = null;
    listen(() => { this.shown = ""; this.draw(); });
    state.listen((now, before) => { this.following = this.follow(now, before); });
    this.following = this.follow(state.now, null);
  }

  // What is shown: of one block here, of all launches in `ranks_timeline.js`.

  get count() {
    return this.run.count;
  }

  get position() {
    return this.state.now.position;
  }

  /** @returns {[number, number]} */
  whole() {
    const block = this.run.blocks.find((one) => one.number === this.block);
    return block ? [block.first, Math.max(block.last, block.first + LOWEST)] : [0, 0];
  }

  /** @param {number} warp */
  blockOf(warp) {
    return this.run.blockOf(warp);
  }

  /** @param {number} level @param {number} tile @returns {Promise<Track[]>} */
  ask(level, tile) {
    return this.run.source.get(`timeline/${this.block}/${level}/${tile}`);
  }

  /** @param {Track} track */
  isOwn(track) {
    return track.warp === this.state.now.warp;
  }

  /** @param {Track | undefined} _ @param {number} instruction */
  lineText(_, instruction) {
    const one = this.run.instructions[instruction];
    return one ? `${one.line}  ${this.run.texts[instruction]}` : "";
  }

  /** @param {number} at */
  label(at) {
    return grouped(Math.round(at));
  }

  /** @param {number} phase */
  phaseText(phase) {
    return `phase ${phase}`;
  }

  /** @param {number} step @param {Track | undefined} track */
  choose(step, track) {
    this.state.set({ position: step, ...(track && track.warp >= 0 ? { warp: track.warp } : {}) });
  }

  /** @param {CanvasRenderingContext2D} _ */
  paintOver(_) {}

  /**
   * @param {import("lab/state.js").Looked} now
   * @param {import("lab/state.js").Looked | null} before
   */
  async follow(now, before) {
    const block = this.blockOf(now.warp);
    const { position } = this;
    if (block !== this.block) {
      this.block = block;
      this.fit();
    } else if (position < this.from || position > this.to) {
      const span = this.to - this.from;
      this.set(position - span / 3, position + (2 * span) / 3);
    } else if (!before || now.position !== before.position || now.warp !== before.warp) {
      this.run.settled(now).then(() => this.draw());
    }
    await Promise.all([this.loading, this.markLine(now)]);
  }

  /** Ticks where the chosen warp executes the current line. @param {import("lab/state.js").Looked} now */
  async markLine(now) {
    const own = ++this.marked;
    const { run } = this;
    const block = run.blockOf(now.warp);
    const position = run.within(block, now.position);
    const near = `${block}/${run.windowOf(position)}`;
    const isFar = near !== this.near && run.source.kind === "served"; // the line is not known yet: one request has both
    this.near = near;
    if (isFar) {
      const found = await run.source.get(`ticks/${now.warp}/${position}`).catch(() => ({ line: 0, steps: [] }));
      if (own === this.marked) this.tick(found.line, now.warp, found.steps);
      return;
    }
    const place = await run.place(now.warp, now.position).catch(() => null);
    const line = place && place.instruction >= 0 ? run.instructions[place.instruction].line : 0;
    if (own !== this.marked || (line === this.tickLine && this.tickWarp === now.warp)) return;
    const asked = run.source.kind === "embedded" ? `line/${line}` : `line/${line}/${block}`; // a file has those of all blocks
    const found = line ? await run.source.get(asked).catch(() => null) : null;
    if (own !== this.marked) return;
    this.tick(line, now.warp, found ? found.steps.filter((/** @type {number} */ _, /** @type {number} */ index) => found.warps[index] === now.warp) : []);
  }

  /**
   * @param {number} line
   * @param {number} warp
   * @param {number[]} steps
   */
  tick(line, warp, steps) {
    this.tickLine = line;
    this.tickWarp = warp;
    this.ticks = steps;
    this.draw();
  }

  fit() {
    const [first, last] = this.whole();
    if (last > first) this.set(first, last);
  }

  /**
   * Show a part of the time: the tracks as far as they are known, those of another block when they are there.
   * @param {number} from
   * @param {number} to
   */
  set(from, to) {
    const span = Math.max(LOWEST, Math.min(to - from, this.count || 1));
    this.from = Math.max(0, Math.min(from, this.count - span));
    this.to = this.from + span;
    this.loading = this.load();
    if (this.block === this.loaded) this.draw();
  }

  /**
   * @param {number} by
   * @param {number} [around]
   */
  zoom(by, around = this.position) {
    const at = Math.max(this.from, Math.min(this.to, around));
    this.set(at - (at - this.from) * by, at + (this.to - at) * by);
  }

  get width() {
    return Math.max(40, this.wide - NAMES);
  }

  /** The tiles that are seen: none in a pane that is not shown. */
  async load() {
    if (!this.wide) return;
    const level = Math.max(0, Math.ceil(Math.log2((this.to - this.from) / this.width)));
    const first = Math.floor(this.from / (TILE << level));
    const last = Math.min(Math.floor(this.to / (TILE << level)), first + 8);
    const asked = `${this.block}/${level}/${first}/${last}`;
    if (asked === this.asked) return;
    this.asked = asked;
    const asks = [];
    for (let tile = first; tile <= last; tile++) asks.push(this.ask(level, tile).catch(() => []));
    const tiles = await Promise.all(asks);
    if (asked !== this.asked) return;
    this.tracks = joined(tiles);
    this.loaded = this.block;
    this.draw();
  }

  /** @param {number} step */
  x(step) {
    return NAMES + ((step - this.from) / (this.to - this.from)) * this.width;
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  paint() {
    const height = this.tracks.length * ROW + 24;
    const tall = this.isNarrow.matches ? "100%" : `${Math.max(64, Math.min(height, 196))}px`;
    if (this.element.style.height !== tall) this.element.style.height = tall;
    const high = `${height}px`;
    if (this.canvas.style.height !== high) this.canvas.style.height = this.marks.style.height = high;
    const shown = `${this.from}/${this.to}/${this.wide}/${this.state.now.warp}/${window.devicePixelRatio}`;
    if (shown !== this.shown || this.tracks !== this.shownTracks) this.paintTracks(height);
    this.shown = shown;
    this.shownTracks = this.tracks;
    this.paintMarks(height);
  }

  /** @param {number} height */
  paintTracks(height) {
    const context = cleared(this.canvas, this.wide, height);
    context.font = `11px ${styled("sans")}`;
    context.textBaseline = "middle";
    this.paintScale(context, styled, height);
    this.tracks.forEach((track, index) => {
      const top = TOP + index * ROW;
      context.fillStyle = this.isOwn(track) ? styled("accent") : styled("soft");
      context.fillText(track.name, 14, top + ROW / 2, NAMES - 20);
      context.save();
      context.beginPath();
      context.rect(NAMES, top, this.width, ROW);
      context.clip();
      for (const period of track.periods) this.paintPeriod(context, styled, track, period, top);
      context.restore();
    });
    this.paintOver(context);
  }

  /** Where the chosen warp executes the current line, and the position. @param {number} height */
  paintMarks(height) {
    const context = cleared(this.marks, this.wide, height);
    const { position } = this;
    const row = this.tracks.findIndex((one) => this.isOwn(one));
    context.fillStyle = styled("violet");
    if (row >= 0) for (const tick of this.ticks) if (tick >= this.from && tick <= this.to) context.fillRect(this.x(tick), TOP + row * ROW, 1.5, 4);
    if (position >= this.from && position <= this.to) {
      context.fillStyle = styled("error");
      context.fillRect(Math.round(this.x(position)) - 0.5, 16, 1.5, height - 16);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(name: string) => string} color
   * @param {number} height
   */
  paintScale(context, color, height) {
    const span = this.to - this.from;
    const raw = span / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(raw));
    const each = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? raw);
    context.textAlign = "left";
    for (let at = Math.ceil(this.from / each) * each; at <= this.to; at += each) {
      context.fillStyle = color("rule");
      context.fillRect(Math.round(this.x(at)), 14, 1, height);
      context.fillStyle = color("faint");
      context.fillText(this.label(at), this.x(at) + 3, 8);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {(name: string) => string} color
   * @param {Track} track
   * @param {[number, number, number, number]} period
   * @param {number} top
   */
  paintPeriod(context, color, track, [start, end, what, instruction], top) {
    const x = this.x(start);
    const width = Math.max(1, this.x(end) - x);
    if (what === WAITS) {
      context.fillStyle = color("rule");
      context.fillRect(x, top + ROW - 3, width, 1);
      this.paintText(context, color("faint"), `waits  ${this.lineText(track, instruction)}`, x, width, top - 0.5);
      return;
    }
    if (what === PHASED) {
      context.fillStyle = instruction % 2 ? color("violet") : color("violet-soft");
      context.fillRect(x, top + 3, width - 1, ROW - 6);
      this.paintText(context, instruction % 2 ? color("paper") : color("violet"), this.phaseText(instruction), x, width, top);
      return;
    }
    const own = this.isOwn(track);
    context.fillStyle = what === OPERATION ? color("good") : own ? color("accent") : color("accent-soft");
    if (what === MANY) context.globalAlpha = 0.6;
    context.fillRect(x, top + 2, Math.max(1, width - (width > 3 ? 0.5 : 0)), ROW - 4);
    context.globalAlpha = 1;
    if (what !== MANY) this.paintText(context, what === OPERATION || own ? color("accent-ink") : color("soft"), this.lineText(track, instruction), x, width, top);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} color
   * @param {string} text
   * @param {number} x
   * @param {number} width
   * @param {number} top
   */
  paintText(context, color, text, x, width, top) {
    const start = Math.max(x, NAMES);
    const room = x + width - start - 8;
    if (room < 30) return;
    context.fillStyle = color;
    const fits = Math.floor(room / 6);
    context.fillText(text.length > fits ? `${text.slice(0, Math.max(1, fits - 1))}…` : text, start + 4, top + ROW / 2 + 0.5);
  }

  listen() {
    let dragged = 0;
    let last = 0;
    this.canvas.addEventListener("pointerdown", (event) => {
      dragged = 0;
      last = event.clientX;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) {
        dragged += Math.abs(event.clientX - last);
        const by = ((last - event.clientX) / this.width) * (this.to - this.from);
        last = event.clientX;
        if (dragged > 4) this.set(this.from + by, this.to + by);
      } else this.point(event);
    });
    this.canvas.addEventListener("pointerleave", () => fill(this.hint));
    this.canvas.addEventListener("click", (event) => { if (dragged <= 4) this.clicked(event); });
    this.canvas.addEventListener("wheel", (event) => {
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = ((event.deltaX || event.deltaY) / this.width) * (this.to - this.from);
        this.set(this.from + by, this.to + by);
      } else if (event.ctrlKey || event.metaKey || this.scroll.scrollHeight <= this.scroll.clientHeight + 1) {
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.stepAt(event));
      } else return;
      event.preventDefault();
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const keys = /** @type {Record<string, () => void>} */ ({ "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.fit() });
      if (keys[event.key]) keys[event.key]();
    });
  }

  /** @param {MouseEvent} event */
  stepAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return Math.round(this.from + ((x - NAMES) / this.width) * (this.to - this.from));
  }

  /** @param {MouseEvent} event */
  trackAt(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    return this.tracks[Math.floor((y - TOP) / ROW)];
  }

  /** @param {MouseEvent} event */
  periodAt(event) {
    const step = this.stepAt(event);
    const track = this.trackAt(event);
    return { step, track, period: track?.periods.find(([start, end]) => start <= step && step < end) };
  }

  /** @param {MouseEvent} event */
  point(event) {
    const { step, track, period } = this.periodAt(event);
    if (!track || step < this.from) {
      fill(this.hint);
      return;
    }
    const [start, end, what, instruction] = period ?? [0, 0, -1, -1];
    const does = what === PHASED ? this.phaseText(instruction) : what === WAITS ? `waits at line ${this.lineText(track, instruction)}` : what === RUNS ? `runs from line ${this.lineText(track, instruction)}` : what >= 0 ? this.lineText(track, instruction) : "";
    fill(this.hint, h("b", {}, track.name), ` ${does} `, what >= 0 ? h("span", { class: "note" }, `${this.label(start)} – ${this.label(end)}`) : "");
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const { step, track, period } = this.periodAt(event);
    const position = Math.max(0, Math.min(this.count, step));
    if (track?.kind === "operation" && period) this.state.set({ position: Math.max(0, period[0]), ...(this.ownerOf(period) ?? {}) });
    else this.choose(position, track);
  }

  /** The warp that executes the step at which an operation is issued. @param {[number, number, number, number]} period */
  ownerOf([start]) {
    for (const track of this.tracks) {
      if (track.kind === "warp" && track.periods.some(([from, to, what]) => what !== WAITS && from <= start && start < to)) return { warp: track.warp };
    }
    return null;
  }
}

/** The tracks of several tiles as one. @param {Track[][]} tiles */
function joined(tiles) {
  /** @type {Map<string, Track>} */
  const found = new Map();
  for (const tile of tiles) {
    for (const track of tile) {
      const name = `${track.launch ?? ""}/${track.name}`;
      const known = found.get(name);
      if (!known) {
        found.set(name, { ...track, periods: [...track.periods] });
        continue;
      }
      for (const period of track.periods) {
        const last = known.periods[known.periods.length - 1];
        if (!last || period[0] > last[0] || period[1] > last[1]) known.periods.push(period);
      }
    }
  }
  return [...found.values()];
}
