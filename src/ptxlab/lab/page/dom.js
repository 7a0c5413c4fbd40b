/** Elements of the document, made in one call; long lists of which only what is seen exists. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element with attributes, properties and children.
 * @param {string} tag
 * @param {Record<string, any>} [given] `class`, `on…` handlers, `style` as text, `data-…`, other attributes
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  dress(made, given);
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) made.append(child instanceof Node ? child : String(child));
  }
  return made;
}

/**
 * The same in SVG.
 * @param {string} tag
 * @param {Record<string, any>} [given]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, given = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(made, given);
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) made.append(child instanceof Node ? child : String(child));
  }
  return made;
}

/**
 * @param {Element} made
 * @param {Record<string, any>} given
 */
function dress(made, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * Replace what an element holds.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const nodes = [];
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) nodes.push(child instanceof Node ? child : String(child));
  }
  element.replaceChildren(...nodes);
}

/**
 * Make an element show a text, if it does not.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  const first = element.firstChild;
  if (first instanceof Text) {
    if (first.data !== text) first.data = text;
  } else if (text) element.textContent = text;
}

/**
 * A list of rows of one height, of which those exist that are seen; one is drawn anew when its signature changes.
 * Where the list is scrolled to is known here: to ask the browser between two changes has it lay out the page.
 */
export class Rows {
  /**
   * @param {number} height of a row, in pixels
   * @param {(index: number, old: HTMLElement | null) => HTMLElement} row makes a row, or changes one that shows something else
   * @param {Record<string, any>} given
   * @param {(index: number) => string} [sign] all that a row shows, as text
   * @param {number} [kept] how many rows that are not seen any more stay in the document
   */
  constructor(height, row, given = {}, sign, kept = 0) {
    this.height = height;
    this.row = row;
    this.sign = sign;
    this.kept = kept;
    this.count = 0;
    /** @type {Map<number, { signature: string, element: HTMLElement }>} */
    this.known = new Map();
    this.inner = h("div", { class: "rows-inner" });
    this.element = h("div", { ...given, class: `rows ${given.class ?? ""}`, style: `--row:${height}px` }, this.inner);
    /** @type {HTMLElement[]} rows that show nothing yet */
    this.reserve = [];
    this.isHidden = true;
    this.top = 0;
    this.wide = 0;
    this.seen = 0; // its height
    this.wanted = -1; // the row that was to be seen last, until the user scrolls
    this.pending = 0;
    this.isOwn = false; // whether the next event of a scroll is of one that was asked for here
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    new ResizeObserver(([{ contentRect }]) => this.resized(contentRect.width, contentRect.height)).observe(this.element);
    this.drawn = "";
    /** @type {((first: number, past: number) => void) | null} called when the rows from one to another have been drawn */
    this.drew = null;
  }

  /**
   * Draw what is seen now; one that was not in the document has lost its place.
   * @param {number} width
   * @param {number} height
   */
  resized(width, height) {
    if (!height) {
      this.isHidden = true;
      return;
    }
    if (this.wide !== width) this.drawn = "";
    this.wide = width;
    this.seen = height;
    if (this.isHidden) this.element.scrollTop = this.top;
    this.isHidden = false;
    if (!this.pending) this.top = this.element.scrollTop;
    if (this.wanted >= 0) this.show(this.wanted);
    this.draw();
  }

  scrolled() {
    if (this.isOwn || this.pending) {
      this.isOwn = false;
      return;
    }
    const top = this.element.scrollTop;
    if (Math.abs(top - this.top) > 1) this.wanted = -1;
    this.top = top;
    this.draw();
  }

  /** For a list that is not as high as there is space. @param {number} pixels */
  limit(pixels) {
    this.seen = pixels;
    this.element.style.height = `${pixels + 2}px`;
  }

  /** The part that is seen, in pixels: its start and its end. */
  get range() {
    return [this.top, this.top + (this.seen || 600)];
  }

  /** @param {number} top */
  scroll(top) {
    this.move(top);
    this.refresh();
  }

  /** Scroll with the next frame, when all else of it is in the document; what is seen then is drawn by `refresh`. @param {number} top */
  move(top) {
    this.top = Math.max(0, Math.min(Math.round(top), this.count * this.height - (this.seen || 600)));
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      const before = this.element.scrollTop;
      this.element.scrollTop = this.top;
      this.isOwn = this.element.scrollTop !== before;
    });
  }

  /** @param {number} count */
  resize(count) {
    this.count = count;
    const height = `${count * this.height}px`;
    if (this.inner.style.height !== height) this.inner.style.height = height;
    for (const [index, { element }] of this.known) {
      if (index < count) continue;
      element.remove();
      this.known.delete(index);
    }
    this.refresh();
  }

  /** Draw anew what has changed, of rows that are kept, too. */
  refresh() {
    this.drawn = "";
    this.draw();
    if (this.kept) for (const index of this.known.keys()) this.drawRow(index, []);
  }

  draw() {
    const top = Math.max(0, Math.floor(this.range[0] / this.height) - 2);
    const past = Math.min(this.count, Math.ceil(this.range[1] / this.height) + 2);
    const drawn = `${top}-${past}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const spare = this.spare(top, past);
    for (let index = top; index < past; index++) this.drawRow(index, spare);
    for (const element of spare) element.remove();
    this.drew?.(Math.min(top, past), past);
  }

  /** Make rows that are not seen yet, one after the other; `make` has those that are kept apart until they are needed. */
  *prepare(/** @type {(() => HTMLElement) | null} */ make = null) {
    if (make) {
      for (let seen = this.seen / this.height + 4; this.reserve.length + this.known.size < seen;) {
        const made = make();
        made.classList.add("reserved");
        this.inner.append(made);
        this.reserve.push(made);
        yield;
      }
    }
    for (let index = 0; index < this.count && this.known.size < this.kept; index++) {
      if (this.known.has(index)) continue;
      this.drawRow(index, []);
      yield;
    }
  }

  /**
   * Rows that are not seen and not kept.
   * @param {number} top
   * @param {number} past
   */
  spare(top, past) {
    const found = [];
    let excess = this.known.size - this.kept;
    for (const [index, { element }] of this.known) {
      if (excess <= 0) break;
      excess--;
      if (index >= top && index < past) continue;
      found.push(element);
      this.known.delete(index);
    }
    return found;
  }

  /**
   * @param {number} index
   * @param {HTMLElement[]} spare
   */
  drawRow(index, spare) {
    const signature = this.sign ? this.sign(index) : "";
    const known = this.known.get(index);
    if (known && this.sign && known.signature === signature) return;
    const old = known?.element ?? spare.pop() ?? this.reserve.shift() ?? null;
    const element = this.row(index, old);
    if (element !== old || !known) element.style.top = `${index * this.height}px`;
    if (element !== old) {
      if (old) old.replaceWith(element);
      else this.inner.append(element);
    }
    this.known.set(index, { signature, element });
  }

  /**
   * Scroll so that a row is seen, if it is not.
   * @param {number} index
   */
  show(index) {
    this.aim(index);
    this.draw();
  }

  /**
   * The same; what is seen then is drawn by `refresh`.
   * @param {number} index
   */
  aim(index) {
    this.wanted = index;
    const at = index * this.height;
    const [top, bottom] = this.range;
    const margin = bottom - top > 8 * this.height ? 2 * this.height : 0;
    if (at < top + margin || at > bottom - margin - this.height) this.move(at - (bottom - top) / 3);
  }
}

/**
 * Do some work, part by part, when there is nothing else to do.
 * @param {Iterator<void>} work
 */
export function whileIdle(work) {
  const idle = window.requestIdleCallback ?? ((act) => setTimeout(() => act({ didTimeout: false, timeRemaining: () => 0 }), 50));
  const go = (/** @type {IdleDeadline} */ deadline) => {
    let isDone = false;
    do isDone = Boolean(work.next().done); while (!isDone && deadline.timeRemaining() > 4);
    if (!isDone) idle(go);
  };
  idle(go);
}

/** @type {WeakMap<Element, () => string>} what is said beside the pointer, made when it is asked for */
const tips = new WeakMap();

/**
 * @template {Element} T
 * @param {T} element
 * @param {() => string} tip
 * @returns {T}
 */
export function tipped(element, tip) {
  tips.set(element, tip);
  return element;
}

/** @type {WeakMap<Element, (target: Element, event: PointerEvent) => string>} the same of all that is in an element */
const tipsOf = new WeakMap();

/**
 * @param {Element} element
 * @param {(target: Element, event: PointerEvent) => string} tip
 */
export function tipsIn(element, tip) {
  element.classList.add("has-tips");
  tipsOf.set(element, tip);
}

/**
 * A row of buttons of which one is pressed.
 * @template {string} T
 * @param {string} label
 * @param {Array<[T, string]>} options
 * @param {T} chosen
 * @param {(value: T) => void} choose
 * @returns {HTMLElement}
 */
export function choice(label, options, chosen, choose) {
  return h("div", { class: "choice", role: "radiogroup", "aria-label": label },
    options.map(([value, text]) => h("button", {
      type: "button", role: "radio", "aria-checked": value === chosen, class: value === chosen ? "on" : "",
      onclick: () => choose(value), "data-value": value,
    }, text)));
}

/**
 * Text beside the pointer, for an element that has `data-tip`.
 */
export function startTips() {
  const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
  document.addEventListener("pointermove", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const around = target?.closest(".has-tips");
    const text = target && (tips.get(target)?.() || (around && tipsOf.get(around)?.(target, event)) || target.closest("[data-tip]")?.getAttribute("data-tip"));
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 18 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.transform = `translate(${Math.max(4, x)}px, ${y}px)`;
  }, { passive: true });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.addEventListener("click", () => { tip.hidden = true; }, true);
}
