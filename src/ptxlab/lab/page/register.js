/** A register of a warp: what it holds in each lane, and since when. */

import { bytes } from "lab/source.js";

/** @typedef {{ of: number, name: string, lanes: number, after: number | number[], size: number, data: Uint8Array }} Written a register of a function: the lanes that have a value, after which step, and the bytes of each */

export class Register {
  /**
   * @param {string} name
   * @param {string} type
   * @param {number} size of a lane's value, in bytes
   */
  constructor(name, type, size) {
    this.name = name;
    this.type = type;
    this.size = size;
    this.lanes = 0;
    /** @type {number | number[]} the step after which it was written, of each lane or of all */
    this.when = -1;
    /** @type {Uint8Array | null} of all lanes; not its own while `isShared` */
    this.bytes = null;
    this.isShared = false;
    /** @type {DataView | null} */
    this.known = null;
  }

  /** @returns {Uint8Array} */
  get data() {
    return this.bytes ??= new Uint8Array(32 * this.size);
  }

  get view() {
    return this.known ??= new DataView(this.data.buffer, this.data.byteOffset, this.data.length);
  }

  /** The step after which a lane's value was written, or -1. @param {number} lane */
  after(lane) {
    return typeof this.when === "number" ? this.when : this.when[lane];
  }

  /** Whether any lane's value was written after a step. @param {number} step */
  isFrom(step) {
    return typeof this.when === "number" ? this.when === step : this.when.includes(step);
  }

  /** @param {Written} one */
  write({ lanes, after, data }) {
    this.known = null;
    if (lanes >>> 0 === 0xffffffff) {
      this.bytes = data;
      this.isShared = true;
      this.when = after;
      this.lanes = 0xffffffff;
      return;
    }
    const { size } = this;
    const own = this.bytes = this.isShared ? this.data.slice() : this.data;
    this.isShared = false;
    const when = this.when = Array.from({ length: 32 }, (_, lane) => this.after(lane));
    for (let lane = 0, at = 0; lane < 32; lane++) {
      if (!(lanes >>> lane & 1)) continue;
      when[lane] = Array.isArray(after) ? after[at] : after;
      own.set(data.subarray(at * size, ++at * size), lane * size);
    }
    this.lanes = (this.lanes | lanes) >>> 0;
  }
}

/**
 * Values of registers, of which an answer has columns.
 * @param {any} given
 * @returns {Written[]}
 */
export function valuesIn(given) {
  const data = bytes(given.data);
  let at = 0;
  return given.names.map((/** @type {string} */ name, /** @type {number} */ index) => {
    const [lanes, size, start] = [given.lanes[index], given.sizes[index], at];
    at += size * bitCount(lanes);
    return { of: given.functions[index], name, lanes, after: given.after[index], size, data: data.subarray(start, at) };
  });
}

/** @param {number} mask */
export function bitCount(mask) {
  let count = 0;
  for (let rest = mask >>> 0; rest; rest &= rest - 1) count++;
  return count;
}
