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

/** A list of rows of one height, of which those exist that are seen. */
export class Rows {
  /**
   * @param {number} height of a row, in pixels
   * @param {(index: number) => HTMLElement} row
   * @param {Record<string, any>} given
   */
  constructor(height, row, given = {}) {
    this.height = height;
    this.row = row;
    this.count = 0;
    this.inner = h("div", { class: "rows-inner" });
    this.element = h("div", { ...given, class: `rows ${given.class ?? ""}` }, this.inner);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.drawn = "";
  }

  /** @param {number} count */
  resize(count) {
    this.count = count;
    this.inner.style.height = `${count * this.height}px`;
    this.refresh();
  }

  /** Draw anew what is seen. */
  refresh() {
    this.drawn = "";
    this.draw();
  }

  draw() {
    const top = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 4);
    const past = Math.min(this.count, Math.ceil((this.element.scrollTop + (this.element.clientHeight || 600)) / this.height) + 4);
    const drawn = `${top}-${past}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const rows = [];
    for (let index = top; index < past; index++) {
      const row = this.row(index);
      row.style.top = `${index * this.height}px`;
      row.style.height = `${this.height}px`;
      rows.push(row);
    }
    this.inner.replaceChildren(...rows);
  }

  /**
   * Scroll so that a row is seen, if it is not.
   * @param {number} index
   */
  show(index) {
    const top = index * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop + 2 * this.height || top > scrollTop + clientHeight - 3 * this.height) {
      this.element.scrollTop = Math.max(0, top - clientHeight / 3);
    }
    this.draw();
  }
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
    const over = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (!over) {
      tip.hidden = true;
      return;
    }
    tip.textContent = over.getAttribute("data-tip");
    tip.hidden = false;
    const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 18 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.transform = `translate(${Math.max(4, x)}px, ${y}px)`;
  }, { passive: true });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.addEventListener("click", () => { tip.hidden = true; });
}
