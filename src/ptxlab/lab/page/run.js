/**
 * A recorded launch as the views ask for it: where warps are, what registers and memory hold at a position.
 * A position is a number of warp steps: those before it are executed.
 */

import { tuple } from "lab/format.js";
import { Register, valuesIn } from "lab/register.js";
import { bytes } from "lab/source.js";

/**
 * @typedef {{ line: number, function: number, text?: string, reads?: string[], writes?: string[], sources?: [string, number][], tile?: boolean }} Instruction
 * @typedef {{ number: number, index: number[], warps: number[], first: number, last: number }} Block
 * @typedef {{ level: string, code: string, message: string, line: number, text: string, labels?: [number, string][], notes?: string[],
 *   helps?: string[], accesses?: any[] }} Finding
 * @typedef {{ step: number, kind: string, size: number, lanes: number[], owners: number[], addresses: number[] }} Access of shared memory
 * @typedef {{ start: number, warps: number[], instructions: number[], active: number[] }} Window
 * @typedef {{ warp: number, step: number, instruction: number, active: number, before: number, instructionBefore: number, ended: boolean }} Place
 * @typedef {{ after: number, instruction: number, asynchronous: boolean, size: number, addresses: Int32Array, data: Uint8Array }} MemoryWrite
 * @typedef {{ base: number, data: Uint8Array, view: DataView, known: Uint8Array, last: (at: number) => MemoryWrite | undefined }} Page
 */

const PATIENCE = 40; // milliseconds

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
    this.texts = this.instructions.map((one) => one.text ?? instructionText(this.lines[one.line - 1] ?? ""));
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
      let { before, after: step, instructionBefore, instructionAfter: instruction, activeAfter: active } = given;
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
          active = window.active[index];
          break;
        }
      }
      return { warp: given.warp, step, instruction, active: active >>> 0, before, instructionBefore, ended: step < 0 };
    });
  }

  /**
   * Until it is known where the warps are, or some time has passed: all that changes is then shown by one frame.
   * @param {import("lab/state.js").Looked} now
   */
  async settled(now) {
    const places = this.places(this.blockOf(now.warp), now.position);
    await Promise.race([places.catch(() => {}), new Promise((done) => { setTimeout(done, PATIENCE); })]);
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

  /** What a step accesses in shared memory. @param {number} step @returns {Promise<Access[]>} */
  async accesses(step) {
    if (step < 0 || step >= this.count) return [];
    const found = /** @type {Access[]} */ (await this.source.get(`accesses/${this.windowOf(step)}`));
    return found.filter((one) => one.step === step);
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
    for (const one of (given.known ??= valuesIn(given.values))) if (one.of === own) this.write(found, one);
    for (const one of (given.written ??= valuesIn(given.writes))) {
      if (/** @type {number} */ (one.after) >= position) break;
      if (one.of === own) this.write(found, one);
    }
    return found;
  }

  /**
   * @param {Map<string, Register>} found
   * @param {import("lab/register.js").Written} one
   */
  write(found, one) {
    let register = found.get(one.name);
    if (!register) {
      const types = this.info.registers[one.of];
      register = new Register(one.name, types[one.name] ?? types[one.name.replace(/\.\w$/, "")] ?? `b${8 * one.size}`, one.size);
      found.set(one.name, register);
    }
    register.write(one);
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
    const writes = /** @type {MemoryWrite[]} */ (given.written ??= writesIn(given.writes));
    for (let number = 0; number < writes.length && writes[number].after < position; number++) {
      const { addresses, size, data: from } = writes[number];
      for (let index = 0; index < addresses.length; index++) {
        const address = addresses[index];
        const past = Math.min(address + size, data.length);
        for (let at = Math.max(address, 0); at < past; at++) {
          data[at] = from[index * size + at - address];
          known[at >> 3] |= 1 << (at & 7);
          last[at >> 2] = number + 1;
        }
      }
    }
    return { base: given.base, data, view: new DataView(data.buffer), known, last: (at) => writes[last[at >> 2] - 1] };
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

/**
 * Writes to memory, of which an answer has columns.
 * @param {any} given
 * @returns {MemoryWrite[]}
 */
function writesIn(given) {
  const addresses = new Int32Array(bytes(given.addresses).buffer);
  const data = bytes(given.data);
  let [first, at] = [0, 0];
  return given.after.map((/** @type {number} */ after, /** @type {number} */ index) => {
    const [size, count] = [given.size[index], given.count[index]];
    const [from, start] = [first, at];
    first += count;
    at += size * count;
    return { after, instruction: given.instruction[index], asynchronous: given.asynchronous[index], size,
      addresses: addresses.subarray(from, first), data: data.subarray(start, at) };
  });
}
