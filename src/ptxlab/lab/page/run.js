/**
 * A recorded launch as the views ask for it: where warps are, what registers and memory hold at a position.
 * A position is a number of warp steps: those before it are executed.
 */

import { tuple } from "lab/format.js";
import { bytes } from "lab/source.js";

/**
 * @typedef {{ line: number, function: number, reads?: string[], writes?: string[], sources?: [string, number][], tile?: boolean }} Instruction
 * @typedef {{ number: number, index: number[], warps: number[], first: number, last: number }} Block
 * @typedef {{ level: string, code: string, message: string, line: number, text: string, labels?: [number, string][], notes?: string[],
 *   helps?: string[], accesses?: any[] }} Finding
 * @typedef {{ name: string, type: string, size: number, lanes: number, data: Uint8Array, view: DataView, after: number[] }} Register
 * @typedef {{ step: number, kind: string, space: string, size: number, lanes: number[], owners: number[], addresses: number[] }} Access
 * @typedef {{ start: number, warps: number[], instructions: number[], active: number[], accesses: Access[] }} Window
 * @typedef {{ warp: number, step: number, instruction: number, before: number, instructionBefore: number, ended: boolean }} Place
 * @typedef {{ after: number, instruction: number, asynchronous: boolean }} MemoryWrite
 * @typedef {{ base: number, data: Uint8Array, view: DataView, known: Uint8Array, last: (at: number) => MemoryWrite | undefined }} Page
 */

export class Run {
  /**
   * @param {import("lab/source.js").Kept} source
   * @param {any} info
   */
  constructor(source, info) {
    this.source = source;
    this.info = info;
    /** @type {string[]} */
    this.lines = info.text.split("\n");
    /** @type {Instruction[]} */
    this.instructions = info.instructions;
    /** @type {Block[]} */
    this.blocks = info.blocks;
    /** @type {Finding[]} */
    this.findings = info.findings;
    /** @type {number} */
    this.count = info.steps;
    this.texts = this.instructions.map((one) => instructionText(this.lines[one.line - 1] ?? ""));
  }

  /** @param {number} position */
  windowOf(position) {
    return Math.max(0, Math.min(Math.floor(position / this.info.window), Math.floor((this.count - 1) / this.info.window)));
  }

  /** @param {number} warp */
  blockOf(warp) {
    return Math.floor(warp / this.info.warpsInBlock);
  }

  /** @param {number} warp */
  warpInBlock(warp) {
    return warp % this.info.warpsInBlock;
  }

  /**
   * Where a block is at a position: it does nothing before its first step, nor after its last.
   * @param {number} block
   * @param {number} position
   */
  within(block, position) {
    const found = this.blocks.find((one) => one.number === block);
    return found ? Math.max(found.first, Math.min(found.last, position)) : position;
  }

  /** @param {number} position @returns {Promise<Window>} */
  window(position) {
    return this.source.get(`steps/${this.windowOf(position)}`);
  }

  /**
   * Where the warps of a block are: the last step of each, and the next.
   * @param {number} block
   * @param {number} position
   * @returns {Promise<Place[]>}
   */
  async places(block, position) {
    position = this.within(block, position);
    const number = this.windowOf(position);
    const [window, around] = await Promise.all([this.window(position), this.source.get(`warps/${block}/${number}`)]);
    return around.map((/** @type {any} */ given) => {
      let { before, after: step, instructionBefore, instructionAfter: instruction } = given;
      for (let index = position - window.start - 1; index >= 0; index--) {
        if (window.warps[index] === given.warp) {
          before = window.start + index;
          instructionBefore = window.instructions[index];
          break;
        }
      }
      for (let index = position - window.start; index < window.warps.length; index++) {
        if (window.warps[index] === given.warp) {
          step = window.start + index;
          instruction = window.instructions[index];
          break;
        }
      }
      return { warp: given.warp, step, instruction, before, instructionBefore, ended: step < 0 };
    });
  }

  /**
   * @param {number} warp
   * @param {number} position
   * @returns {Promise<Place>}
   */
  async place(warp, position) {
    const found = (await this.places(this.blockOf(warp), position)).find((one) => one.warp === warp);
    if (!found) throw new Error(`there is no warp ${warp}`);
    return found;
  }

  /** What a step accesses. @param {number} step @returns {Promise<Access[]>} */
  async accesses(step) {
    if (step < 0 || step >= this.count) return [];
    return (await this.window(step)).accesses.filter((one) => one.step === step);
  }

  /** The lanes that execute a step. @param {number} step */
  async active(step) {
    if (step < 0 || step >= this.count) return 0;
    const window = await this.window(step);
    return window.active[step - window.start] >>> 0;
  }

  /**
   * The registers of a warp that are known, by name.
   * @param {number} warp
   * @param {number} position
   * @param {number} [of] the function; by default that of the next instruction
   * @returns {Promise<Map<string, Register>>}
   */
  async registers(warp, position, of) {
    position = this.within(this.blockOf(warp), position);
    const [given, place] = await Promise.all([
      this.source.get(`registers/${warp}/${this.windowOf(position)}`), this.place(warp, position)]);
    const next = place.instruction >= 0 ? place.instruction : place.instructionBefore;
    const own = of ?? (next >= 0 ? this.instructions[next].function : 0);
    /** @type {Map<string, Register>} */
    const found = new Map();
    for (const one of given.values) if (one.function === own) this.write(found, one, own, one.after);
    for (const one of given.writes) {
      if (one.after >= position) break;
      if (one.function === own) this.write(found, one, own, one.after);
    }
    return found;
  }

  /**
   * @param {Map<string, Register>} found
   * @param {any} one
   * @param {number} of
   * @param {number | number[]} after when, of each lane or of all
   */
  write(found, one, of, after) {
    const given = one.bytes ??= bytes(one.data);
    const count = bitCount(one.lanes);
    const size = given.length / count;
    let register = found.get(one.name);
    if (!register) {
      const data = new Uint8Array(32 * size);
      const types = this.info.registers[of];
      const type = types[one.name] ?? types[one.name.replace(/\.\w$/, "")] ?? `b${8 * size}`;
      register = { name: one.name, type, size, lanes: 0, data, view: new DataView(data.buffer), after: new Array(32).fill(-1) };
      found.set(one.name, register);
    }
    if (count === 32 && !Array.isArray(after)) {
      register.data.set(given);
      register.after.fill(after);
      register.lanes = 0xffffffff;
      return;
    }
    for (let lane = 0, at = 0; lane < 32; lane++) {
      if (!(one.lanes >>> lane & 1)) continue;
      register.after[lane] = Array.isArray(after) ? after[at] : after;
      register.data.set(given.subarray(at * size, ++at * size), lane * size);
    }
    register.lanes = (register.lanes | one.lanes) >>> 0;
  }

  /**
   * A page of memory; `last` is the last write in this window of a word at a byte of the page.
   * @param {string} space
   * @param {number} owner
   * @param {number} page
   * @param {number} position
   * @returns {Promise<Page>}
   */
  async page(space, owner, page, position) {
    const given = await this.source.get(`memory/${space}/${owner}/${page}/${this.windowOf(position)}`);
    given.initial ??= bytes(given.data);
    const data = given.initial.slice();
    const known = (given.initiallyKnown ??= bytes(given.known)).slice();
    const last = new Int32Array((data.length >> 2) + 1); // of each word the number of its last write, from 1 on
    for (let number = 0; number < given.writes.length && given.writes[number].after < position; number++) {
      const write = given.writes[number];
      const from = write.bytes ??= bytes(write.data);
      for (let index = 0; index < write.addresses.length; index++) {
        const address = write.addresses[index];
        const past = Math.min(address + write.size, data.length);
        for (let at = Math.max(address, 0); at < past; at++) {
          data[at] = from[index * write.size + at - address];
          known[at >> 3] |= 1 << (at & 7);
          last[at >> 2] = number + 1;
        }
      }
    }
    return { base: given.base, data, view: new DataView(data.buffer), known, last: (at) => given.writes[last[at >> 2] - 1] };
  }

  /**
   * The line of a file that a line of the PTX was compiled from: the first of its places that can be shown.
   * @param {number} line
   * @returns {{ file: string, line: number, text: string } | null}
   */
  sourceOf(line) {
    for (const [file, at] of this.instructions.find((one) => one.line === line && one.sources)?.sources ?? []) {
      const source = this.info.sources.find((/** @type {any} */ one) => one.file === file);
      if (source) return { file, line: at, text: (source.text.split("\n")[at - 1] ?? "").trim() };
    }
    return null;
  }

  /** @param {number} warp */
  nameOf(warp) {
    const block = this.blocks.find((one) => one.number === this.blockOf(warp));
    return `${this.blocks.length > 1 && block ? `block ${tuple(block.index)} ` : ""}warp ${this.warpInBlock(warp)}`;
  }
}

/** @param {string} line */
function instructionText(line) {
  return line.replace(/\/\/.*$/, "").trim().replace(/;$/, "").replace(/\s+/g, " ");
}

/** @param {number} mask */
export function bitCount(mask) {
  let count = 0;
  for (let rest = mask >>> 0; rest; rest &= rest - 1) count++;
  return count;
}
