/** What the user looks at: a launch of several, a position, a warp, a lane, a view. Views are told when it changes. */

/**
 * @typedef {{ kind: "finding" | "origin", lines: Map<number, string> }} Marks lines of the PTX, and why they are marked
 * @typedef {{ launch: number, position: number, warp: number, lane: number, tab: string, marks: Marks | null, subject: any }} Looked
 */

export class State {
  /** @param {Looked} first */
  constructor(first) {
    this.now = first;
    /** @type {Array<(now: Looked, before: Looked) => void>} */
    this.listeners = [];
    this.shown = first;
    this.pending = false;
  }

  /** @param {(now: Looked, before: Looked) => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** @param {Partial<Looked>} changed */
  set(changed) {
    this.now = { ...this.now, ...changed };
    if (this.pending) return;
    this.pending = true;
    queueMicrotask(() => {
      this.pending = false;
      const before = this.shown;
      this.shown = this.now;
      for (const listener of this.listeners) listener(this.now, before);
      remember(this.now);
    });
  }
}

/** @type {number | undefined} */
let timer;

/** Keep the place in the address, so that it can be sent and comes back. @param {Looked} now */
function remember(now) {
  if (location.protocol === "about:") return; // a frame of a notebook has no address
  clearTimeout(timer);
  timer = setTimeout(() => {
    const place = new URLSearchParams({ ...(now.launch ? { launch: String(now.launch) } : {}), at: String(now.position), warp: String(now.warp), lane: String(now.lane), view: now.tab });
    history.replaceState(null, "", `#${place}`);
  }, 200);
}

/** What the address says. @returns {Partial<Looked>} */
export function remembered() {
  const place = new URLSearchParams(location.hash.slice(1));
  /** @type {Partial<Looked>} */
  const found = {};
  for (const [name, key] of /** @type {const} */ ([["launch", "launch"], ["at", "position"], ["warp", "warp"], ["lane", "lane"]])) {
    const value = Number(place.get(name) ?? NaN);
    if (Number.isInteger(value) && value >= 0) found[key] = value;
  }
  const tab = place.get("view");
  if (tab) found.tab = tab;
  return found;
}

/**
 * What a view shows is asked for, and may come late: only the last that was asked for is shown.
 * @template T
 * @param {(now: Looked) => Promise<T>} ask
 * @param {(found: T, now: Looked) => void} show
 * @param {(wrong: Error) => void} fail
 */
export function latest(ask, show, fail) {
  let last = 0;
  return async (/** @type {Looked} */ now) => {
    const own = ++last;
    try {
      const found = await ask(now);
      if (own === last) show(found, now);
    } catch (wrong) {
      if (own === last) fail(wrong instanceof Error ? wrong : new Error(String(wrong)));
    }
  };
}
