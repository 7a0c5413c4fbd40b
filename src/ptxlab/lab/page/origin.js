/** Where a value comes from: a path of values, from the one that was asked for to arrays and constants. */

import { fill, h, svg } from "lab/dom.js";
import { colored } from "lab/listing.js";
import { grouped } from "lab/format.js";
import { Panel } from "lab/panel.js";

/** @typedef {{ what: string, value: string, line: number, text: string, step: number | null, role: string, sources: number[], more: number,
 *   given: boolean, warp?: number, lane?: number, register?: string, shared?: number[], beside?: Node_[] }} Node_ */

const INDENT = 18;

export class Origin extends Panel {
  title = "Origin";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    super(run, state, "origin");
    this.withBeside = false;
  }

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    if (now.subject?.origin && now.subject !== this.subject) {
      this.subject = now.subject;
      this.found = await run.source.get(now.subject.origin);
      this.isNew = true;
    }
    return this.found;
  }

  /** @param {{ nodes: Node_[] } | undefined} found */
  show(found) {
    if (!found) {
      fill(this.body, h("p", { class: "problem" }, "Click a value: of a register, a lane, a fragment, of memory. Its origin is drawn here, back to the arrays that it was computed from."));
      return;
    }
    if (this.isNew) {
      this.isNew = false;
      const lines = new Map(found.nodes.filter((one) => one.line).map((one) => [one.line, one.what]));
      this.state.set({ marks: { kind: "origin", lines } });
    }
    const inputs = [...new Set(found.nodes.filter((one) => one.given).map((one) => one.what))];
    fill(this.body,
      h("div", { class: "origin-head" },
        h("strong", {}, found.nodes[0].what), h("span", { class: "value" }, found.nodes[0].value ? ` = ${found.nodes[0].value}` : ""),
        inputs.length ? h("p", { class: "note" }, "comes from ", inputs.slice(0, 8).map((one, index) => [index ? ", " : "", h("code", {}, one)]).flat(), inputs.length > 8 ? ` and ${inputs.length - 8} more` : "") : null,
        h("label", {}, this.besideBox(), " with addresses and guards")),
      this.tree(found.nodes));
  }

  besideBox() {
    const box = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", onchange: () => { this.withBeside = box.checked; this.show(this.found); } }));
    box.checked = this.withBeside;
    return box;
  }

  /** @param {Node_[]} nodes */
  tree(nodes) {
    /** @type {Array<{ node: Node_, depth: number, parent: number, again: boolean, beside: boolean }>} */
    const rows = [];
    const seen = new Set();
    const visit = (/** @type {number} */ number, /** @type {number} */ depth, /** @type {number} */ parent) => {
      const node = nodes[number];
      const again = seen.has(number) && node.sources.length > 0;
      seen.add(number);
      rows.push({ node, depth, parent, again, beside: false });
      const own = rows.length - 1;
      if (again) return;
      for (const source of node.sources) if (nodes[source]) visit(source, depth + (node.sources.length > 1 ? 1 : 0) + (parent < 0 ? 1 : 0), own);
      if (this.withBeside) for (const one of node.beside ?? []) rows.push({ node: one, depth: depth + 1, parent: own, again: false, beside: true });
    };
    visit(0, 0, -1);
    const list = h("div", { class: "path" }, rows.map((row, index) => this.row(row, index)));
    requestAnimationFrame(() => connect(list, rows.map((one) => one.parent)));
    return list;
  }

  /**
   * @param {{ node: Node_, depth: number, again: boolean, beside: boolean }} row
   * @param {number} index
   */
  row({ node, depth, again, beside }, index) {
    const isAt = node.step !== null;
    return h("div", {
      class: `path-node ${node.given ? "given" : ""} ${beside ? "beside" : ""}`, style: `margin-left:${depth * INDENT}px`, "data-node": index,
      role: isAt ? "button" : undefined, tabindex: isAt ? 0 : undefined,
      onclick: () => this.go(node),
      onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") this.go(node); },
    },
    h("i", { class: "dot" }),
    h("div", { class: "path-text" },
      h("div", { class: "path-what" },
        h("b", {}, node.what), node.value ? h("span", { class: "value" }, ` = ${node.value}`) : null,
        beside ? h("span", { class: "note" }, ` ${node.role}`) : null, again ? h("span", { class: "note" }, " see above") : null),
      h("div", { class: "code" },
        node.line ? h("span", { class: "number" }, node.line) : null,
        node.line ? colored(shorten(node.text)) : h("span", { class: "note" }, node.text),
        isAt ? h("span", { class: "note at" }, ` step ${grouped(node.step ?? 0)}`) : null),
      node.more > 0 ? h("div", { class: "note" }, `and ${node.more} more like these`) : null));
  }

  /** @param {Node_} node */
  go(node) {
    if (node.step === null) return;
    this.state.set({ position: node.step, ...(node.warp !== undefined ? { warp: node.warp, lane: node.lane } : {}) });
  }
}

/** @param {string} text */
function shorten(text) {
  return text.length > 96 ? `${text.slice(0, 94)}…` : text;
}

/**
 * Lines from each row to the one that it is a source of.
 * @param {HTMLElement} list
 * @param {number[]} parents
 */
function connect(list, parents) {
  const rows = /** @type {HTMLElement[]} */ ([...list.querySelectorAll(".path-node")]);
  const box = list.getBoundingClientRect();
  const dot = (/** @type {HTMLElement} */ row) => {
    const at = /** @type {HTMLElement} */ (row.querySelector(".dot")).getBoundingClientRect();
    return [at.left - box.left + at.width / 2, at.top - box.top + at.height / 2];
  };
  /** @type {SVGElement[]} */
  const lines = [];
  parents.forEach((parent, index) => {
    if (parent < 0 || !rows[parent] || !rows[index]) return;
    const [x1, y1] = dot(rows[parent]);
    const [x2, y2] = dot(rows[index]);
    const path = x1 === x2 ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}V${y2 - 7}Q${x1} ${y2} ${Math.min(x1 + 7, x2)} ${y2}H${x2}`;
    lines.push(svg("path", { d: path, class: "path-line" }));
  });
  list.prepend(svg("svg", { class: "path-lines", width: box.width, height: box.height, "aria-hidden": "true" }, ...lines));
}
