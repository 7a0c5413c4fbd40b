/** Findings: what went wrong, the accesses that it is about, and why nothing orders them. */

import { fill, h } from "lab/dom.js";
import { colored } from "lab/listing.js";
import { grouped } from "lab/format.js";

export class Findings {
  title = "Findings";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   * @param {import("lab/node.js").Node | null} node the launches that ran at the same time
   */
  constructor(run, state, node) {
    this.run = run;
    this.state = state;
    this.node = node;
    this.chosen = 0;
    this.body = h("div", { class: "scroll findings" });
    this.element = h("div", { class: "view" }, this.body);
  }

  /** @param {import("lab/state.js").Looked} now */
  update(now) {
    if (now.subject?.finding !== undefined && now.subject !== this.subject) {
      this.subject = now.subject;
      this.chosen = now.subject.finding;
    }
    if (!this.run.findings.length) {
      fill(this.body, h("p", { class: "problem" }, this.run.info.complete ? "The launch has found nothing wrong." : `Nothing was found; ${this.run.info.end}.`));
      return;
    }
    if (now.marks?.kind !== "finding") this.mark(this.run.findings[this.chosen] ?? this.run.findings[0]);
    fill(this.body, this.run.findings.map((one, index) => this.card(one, index, index === this.chosen)));
  }

  /** @param {import("lab/run.js").Finding} finding */
  mark(finding) {
    const lines = new Map((finding.labels ?? []).map(([line, text]) => [line, text]));
    this.state.set({ marks: { kind: "finding", lines } });
  }

  /**
   * @param {import("lab/run.js").Finding} finding
   * @param {number} index
   * @param {boolean} open
   */
  card(finding, index, open) {
    return h("article", { class: `finding ${finding.level} ${open ? "open" : ""}`, "data-index": index },
      h("button", {
        type: "button", class: "finding-head", "aria-expanded": open,
        onclick: () => { this.chosen = index; this.mark(finding); this.update(this.state.now); },
      }, h("span", { class: `flag ${finding.level}` }, finding.code), h("span", { class: "message" }, ticked(finding.message))),
      open ? this.detail(finding) : null);
  }

  /** @param {import("lab/run.js").Finding} finding */
  detail(finding) {
    const labels = finding.labels ?? [];
    return h("div", { class: "finding-detail" },
      labels.map(([line, text], index) => h("div", { class: "access" },
        h("span", { class: "order" }, index + 1),
        h("div", {},
          this.source(line),
          h("div", { class: "code" }, h("span", { class: "number" }, line), colored((this.run.lines[line - 1] ?? "").trim())),
          h("div", { class: "label" }, ticked(text)),
          this.times(finding, line)))),
      (finding.notes ?? []).map((note) => h("p", { class: "why-not" }, ticked(note))),
      (finding.helps ?? []).map((help) => h("p", { class: "help" }, h("b", {}, "Help: "), ticked(help))),
      labels.length ? null : h("pre", {}, finding.text));
  }

  /** The line of the user's file, above that of the PTX. @param {number} line of the PTX */
  source(line) {
    const found = this.run.sourceOf(line);
    return found ? h("div", { class: "code source" }, h("span", { class: "number" }, `${found.file.split("/").pop()}:${found.line}`), colored(found.text, found.file)) : null;
  }

  /**
   * Buttons that go to the accesses of a line; where none is known, to the last time that it was executed.
   * @param {import("lab/run.js").Finding} finding
   * @param {number} line
   */
  times(finding, line) {
    const accesses = (finding.accesses ?? []).filter((one) => one.line === line && one.step !== undefined);
    const others = (finding.accesses ?? []).filter((one) => this.node && one.line === line && one.launch !== undefined && one.launch !== this.node.launch);
    if (accesses.length || others.length) {
      return [...others.map((one) => this.elsewhere(finding, one)), ...accesses.map((one) => h("button", {
        type: "button", class: "link", "data-step": one.step,
        onclick: () => this.state.set({ position: one.step, warp: one.warp, lane: one.lane }),
      }, `go to step ${grouped(one.step)}, ${this.run.nameOf(one.warp)} lane ${one.lane}`))];
    }
    return this.run.info.counts[line] ? h("button", { type: "button", class: "link", "data-last": line, onclick: () => this.goToLast(line) }, `go to the last time that line ${line} is executed`) : null;
  }

  /**
   * A button that goes to an access of another launch.
   * @param {import("lab/run.js").Finding} finding
   * @param {any} access
   */
  elsewhere(finding, access) {
    const { node } = this;
    const [which, place] = [this.run.findings.indexOf(finding), (finding.accesses ?? []).indexOf(access)];
    return h("button", {
      type: "button", class: "link", "data-launch": access.launch,
      onclick: async () => {
        const there = (await node?.run(access.launch))?.findings[which]?.accesses?.[place];
        if (there?.step !== undefined) node?.go(access.launch, node.timeAt(access.launch, there.step), there.warp);
      },
    }, `go to ${node?.launches[access.launch].title}`);
  }

  /** @param {number} line */
  async goToLast(line) {
    const { steps, warps } = await this.run.source.get(`line/${line}`);
    const last = steps.length - 1;
    if (last >= 0) this.state.set({ position: steps[last], warp: warps[last] });
  }
}

/** Text in which what is between backticks is code. @param {string} text */
export function ticked(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}
