/**
 * Launches that ran at the same time, and the one that is shown. Time is counted in warp steps of all of them; each has
 * runs of steps, between which others had turns.
 */

import { Run } from "lab/run.js";

/**
 * @typedef {{ title: string, rank: number, stream: number, isKernel: boolean, kernel: string, steps: number, complete: boolean,
 *   findings: number, warps: number[], warpsInBlock: number }} Launch
 * @typedef {{ name: string, address: number, initial: number, writes: number[][], waits: any[][] }} Flag
 * @typedef {[number, number, number, number, number, number, number]} Arrow launch, warp and time of a write and of the read that saw it, and the flag
 */

export class Node {
  /**
   * @param {import("lab/source.js").Kept} source
   * @param {any} info
   */
  constructor(source, info) {
    this.source = source;
    /** @type {Launch[]} */
    this.launches = info.launches;
    /** @type {{ starts: number[], times: number[] }[]} */
    this.clocks = info.clocks;
    /** @type {Flag[]} */
    this.flags = info.flags;
    /** @type {Arrow[]} */
    this.arrows = info.arrows;
    /** @type {number} */
    this.end = info.end;
    /** @type {{ times: number[], places: number[] }} where times are on the axis of the timeline, which is short where warps only poll */
    this.axis = { times: info.axis[0], places: info.axis[1] };
    /** @type {number} */
    this.launch = info.start;
    this.time = 0;
    /** @type {number | null} the time that the next position is for */
    this.pinned = null;
    /** @type {Map<number, Run>} those that are known */
    this.runs = new Map();
    /** @type {(launch: number, time: number, warp: number | undefined) => void} shows another launch */
    this.open = () => {};
    /** @type {import("lab/state.js").State | null} */
    this.state = null;
  }

  /** @param {number} launch @returns {Promise<Run>} */
  async run(launch) {
    const known = this.runs.get(launch);
    if (known) return known;
    const source = this.source.of(`${launch}/`);
    const found = this.runs.get(launch) ?? new Run(source, await source.get("run"));
    this.runs.set(launch, found);
    return found;
  }

  /** Follow the position of the launch that is shown. @param {import("lab/state.js").State} state */
  follow(state) {
    this.state = state;
    state.listen((now, before) => {
      if (this.state !== state || now.position === before.position) return;
      this.time = this.pinned ?? this.timeAt(this.launch, now.position);
      this.pinned = null;
    });
  }

  /**
   * When so many steps of a launch are executed: right after the last of them.
   * @param {number} launch
   * @param {number} position
   */
  timeAt(launch, position) {
    const { starts, times } = this.clocks[launch];
    if (!starts.length) return 0;
    const run = upTo(starts, Math.max(position - 1, 0));
    return times[run] + position - starts[run];
  }

  /**
   * How many steps of a launch are executed before a time.
   * @param {number} launch
   * @param {number} time
   */
  positionAt(launch, time) {
    const { starts, times } = this.clocks[launch];
    const run = upTo(times, time - 1);
    if (run < 0) return 0;
    return Math.min(starts[run] + time - times[run], starts[run + 1] ?? this.launches[launch].steps);
  }

  /** Where a time is on the axis. @param {number} time */
  placeOf(time) {
    return between(this.axis.times, this.axis.places, time);
  }

  /** The time at a place of the axis. @param {number} place */
  timeOf(place) {
    return Math.round(between(this.axis.places, this.axis.times, place));
  }

  /**
   * Show a launch at a time.
   * @param {number} launch
   * @param {number} time
   * @param {number} [warp]
   */
  go(launch, time, warp) {
    time = Math.max(0, Math.min(this.end, time));
    if (launch !== this.launch || !this.state) {
      this.open(launch, time, warp);
      return;
    }
    this.pinned = time;
    this.time = time;
    const position = this.positionAt(launch, time);
    if (position === this.state.now.position) this.pinned = null;
    this.state.set({ position, ...(warp === undefined ? {} : { warp }), subject: this.state.now.subject });
  }
}

/** The last of some ascending numbers that is at most another; -1 if none is. @param {number[]} numbers @param {number} most */
export function upTo(numbers, most) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * What is at a value, by the straight line between the points around it.
 * @param {number[]} from
 * @param {number[]} to
 * @param {number} value
 */
function between(from, to, value) {
  const at = Math.max(0, Math.min(from.length - 2, upTo(from, value)));
  const span = from[at + 1] - from[at];
  return span ? to[at] + ((value - from[at]) * (to[at + 1] - to[at])) / span : to[at];
}
