/** The timeline of all launches that ran at the same time: their warps, the values of flags, and arrows from writes to the reads that saw them. */

import { Timeline, NAMES, ROW, TOP } from "lab/timeline.js";
import { grouped } from "lab/format.js";
import { styled } from "lab/palette.js";

const MOST = 400; // arrows that are drawn

export class RanksTimeline extends Timeline {
  get count() {
    return this.node.axis.places[this.node.axis.places.length - 1];
  }

  get position() {
    return this.node.placeOf(this.node.time);
  }

  /** @returns {[number, number]} */
  whole() {
    return [0, this.count];
  }

  /** All launches are one. */
  blockOf() {
    return 0;
  }

  /** @param {number} level @param {number} tile */
  ask(level, tile) {
    return this.node.source.get(`ranks/${level}/${tile}`);
  }

  /** There are no ticks of a line here. */
  async markLine() {}

  /** @param {import("lab/timeline.js").Track} track */
  isOwn(track) {
    return track.launch === this.node.launch && track.warp === this.state.now.warp;
  }

  /** @param {import("lab/timeline.js").Track} track @param {number} instruction */
  lineText(track, instruction) {
    const run = this.node.runs.get(track.launch ?? -1);
    if (!run && track.launch !== undefined && track.launch >= 0) this.node.run(track.launch).then(() => { this.shown = ""; this.draw(); });
    const one = run?.instructions[instruction];
    return one && run ? `${one.line}  ${run.texts[instruction]}` : "";
  }

  /** @param {number} at */
  label(at) {
    return grouped(this.node.timeOf(at));
  }

  /** @param {number} value */
  phaseText(value) {
    return String(value);
  }

  /**
   * @param {number} step
   * @param {import("lab/timeline.js").Track | undefined} track
   */
  choose(step, track) {
    const isWarp = track !== undefined && track.warp >= 0;
    this.node.go(isWarp ? track.launch ?? this.node.launch : this.node.launch, this.node.timeOf(step), isWarp ? track.warp : undefined);
  }

  /** @param {CanvasRenderingContext2D} context */
  paintOver(context) {
    const rows = new Map(this.tracks.map((track, index) => [`${track.launch}/${track.warp}`, index]));
    const [low, high] = [this.node.timeOf(this.from), this.node.timeOf(this.to)];
    const seen = this.node.arrows.filter(([, , from, , , to]) => to >= low && from <= high);
    context.save();
    context.beginPath();
    context.rect(NAMES, TOP, this.width, this.tracks.length * ROW);
    context.clip();
    for (const [writer, own, from, reader, other, to] of seen.slice(0, MOST)) {
      const [start, end] = [rows.get(`${writer}/${own}`), rows.get(`${reader}/${other}`)];
      if (start === undefined || end === undefined) continue;
      const isNear = writer === this.node.launch || reader === this.node.launch;
      const [x, y, u, v] = [this.x(this.node.placeOf(from + 1)), TOP + start * ROW + ROW / 2, this.x(this.node.placeOf(to)), TOP + end * ROW + ROW / 2];
      context.globalAlpha = isNear ? 0.95 : 0.4;
      context.strokeStyle = context.fillStyle = styled("error");
      context.lineWidth = 1.25;
      context.beginPath();
      context.moveTo(x, y);
      context.bezierCurveTo(x + Math.min(24, Math.max(6, (u - x) / 3)), y, u - Math.min(24, Math.max(6, (u - x) / 3)), v, u, v);
      context.stroke();
      context.beginPath();
      context.moveTo(u + 1, v);
      context.lineTo(u - 6, v - 3.5);
      context.lineTo(u - 6, v + 3.5);
      context.fill();
    }
    context.restore();
  }
}
