/**
 * Where the page has its data from: a server that is asked, a notebook around it, or the file itself.
 * All of them answer the same names: `run`, `steps/3`, `registers/0/3`, …; see views.py.
 */

/** @typedef {{ get(name: string): Promise<any>, kind: string }} Source */

const KEPT = 300; // answers
const REST = 300; // milliseconds without a change, after which what is near is asked for
const WINDOWED = /^(\d+\/)?(steps|accesses|warps|registers|memory|barriers)\//;
const TOGETHER = /^(\d+\/)?(steps|accesses|warps|registers|memory|barriers|timeline|line|ticks|copies|copy|tensor|ranks)\//;
const TIMELINE = /^(\d+\/)?timeline\//;
const MOST = 40; // answers of one request

/** @typedef {{ name: string, resolve: (found: any) => void, reject: (wrong: Error) => void }} Open */

/** After what runs now and what that awaits, but before the next frame, which takes a while. @param {() => void} act */
function soon(act) {
  let left = 6;
  const wait = () => { if (left--) queueMicrotask(wait); else act(); };
  wait();
}

/** Answers of the server that the page came from; what is asked for at one time, and made fast, is one request. */
class Served {
  kind = "served";

  constructor() {
    /** @type {Open[]} */
    this.open = [];
    this.hasTimeline = false;
  }

  /** The first of them takes a while: nothing else waits for it. @param {string} name */
  async askTimeline(name) {
    const found = await this.ask(name);
    this.hasTimeline = true;
    return found;
  }

  /** @param {string} name @returns {Promise<any>} */
  get(name) {
    if (!TOGETHER.test(name)) return this.ask(name);
    if (TIMELINE.test(name) && !this.hasTimeline) return this.askTimeline(name);
    return new Promise((resolve, reject) => {
      if (!this.open.length) soon(() => this.askAll());
      this.open.push({ name, resolve, reject });
    });
  }

  /** @param {string} name */
  async ask(name) {
    const answer = await fetch(`data/${name}`);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  async askAll() {
    const asked = this.open.splice(0, MOST);
    if (this.open.length) soon(() => this.askAll());
    try {
      const names = asked.map((one) => one.name);
      const answers = names.length > 1 ? await this.ask(names.join(",")) : [{ found: await this.ask(names[0]) }];
      asked.forEach(({ resolve, reject }, index) => {
        const { found, problem } = answers[index];
        if (problem === undefined) resolve(found);
        else reject(new Error(problem));
      });
    } catch (wrong) {
      for (const { reject } of asked) reject(wrong instanceof Error ? wrong : new Error(String(wrong)));
    }
  }
}

/** Answers that are in the file, compressed in parts. */
class Embedded {
  kind = "embedded";

  /** @param {{ parts: string[], names: Record<string, [number, string]>, missing: string }} given */
  constructor(given) {
    this.given = given;
    /** @type {Map<number, Promise<Record<string, any>>>} */
    this.parts = new Map();
  }

  /** @param {string} name */
  async get(name) {
    const place = this.given.names[name];
    if (!place) throw new Error(this.given.missing);
    const [part, own] = place;
    if (!this.parts.has(part)) this.parts.set(part, unpack(this.given.parts[part]));
    return (await /** @type {Promise<Record<string, any>>} */ (this.parts.get(part)))[own];
  }
}

/** Answers of the notebook that shows the page in a frame: it asks its kernel. */
class Asked {
  kind = "asked";

  constructor() {
    /** @type {Map<string, { resolve: (found: any) => void, reject: (wrong: Error) => void }>} */
    this.open = new Map();
    window.addEventListener("message", (event) => {
      const { name, found, problem } = event.source === window.parent ? event.data ?? {} : {};
      const asked = this.open.get(name);
      if (!asked) return;
      this.open.delete(name);
      if (problem === undefined) asked.resolve(found);
      else asked.reject(new Error(problem));
    });
  }

  /** @param {string} name @returns {Promise<any>} */
  get(name) {
    return new Promise((resolve, reject) => {
      this.open.set(name, { resolve, reject });
      window.parent.postMessage({ ptxlab: name }, "*");
    });
  }
}

/** @param {string} text */
async function unpack(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** @param {string} text in base64 */
export function bytes(text) {
  const { fromBase64 } = /** @type {any} */ (Uint8Array);
  if (fromBase64) return /** @type {Uint8Array<ArrayBuffer>} */ (fromBase64.call(Uint8Array, text)); // browsers since 2025
  const given = atob(text);
  const found = new Uint8Array(given.length);
  for (let index = 0; index < given.length; index++) found[index] = given.charCodeAt(index);
  return found;
}

/** A source that keeps what it was asked last. */
export class Kept {
  /**
   * @param {Source} source
   * @param {string} prefix of the names of all that it is asked for
   */
  constructor(source, prefix = "") {
    this.source = source;
    this.prefix = prefix;
    this.kind = source.kind;
    /** @type {Map<string, Promise<any>>} */
    this.known = new Map();
    /** @type {Set<string>} names with a window that were asked for since the position changed */
    this.asked = new Set();
    /** @type {number | undefined} */
    this.timer = undefined;
  }

  /** What is asked for with other names. @param {string} prefix */
  of(prefix) {
    return new Kept(this.source, prefix);
  }

  /** What is needed when the position leaves its window: asked for when nothing else is. @param {number} windows */
  prepareNext(windows) {
    clearTimeout(this.timer);
    const near = [...this.asked];
    this.asked.clear();
    this.timer = setTimeout(() => {
      for (const name of near) {
        const at = name.lastIndexOf("/");
        for (const window of [Number(name.slice(at + 1)) + 1, Number(name.slice(at + 1)) - 1]) {
          if (window >= 0 && window < windows) this.get(`${name.slice(0, at)}/${window}`).catch(() => {});
        }
      }
      this.asked.clear();
    }, REST);
  }

  /**
   * @param {string} name
   * @returns {Promise<any>}
   */
  get(name) {
    if (WINDOWED.test(name)) this.asked.add(name);
    const known = this.known.get(name);
    if (known) {
      this.known.delete(name);
      this.known.set(name, known);
      return known;
    }
    const asked = this.source.get(this.prefix + name);
    asked.catch(() => this.known.delete(name));
    this.known.set(name, asked);
    if (this.known.size > KEPT) this.known.delete(/** @type {string} */ (this.known.keys().next().value));
    return asked;
  }
}

/** @returns {Kept} */
export function sourceOfPage() {
  const embedded = document.getElementById("embedded");
  if (embedded) return new Kept(new Embedded(JSON.parse(embedded.textContent ?? "")));
  return new Kept(document.documentElement.dataset.asks ? new Asked() : new Served());
}
