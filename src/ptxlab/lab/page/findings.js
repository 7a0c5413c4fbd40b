/** Findings: what went wrong, the accesses that it is about, and why nothing orders them. */

import { fill, h } from "lab/dom.js";
import { colored } from "lab/listing.js";
import { grouped } from "lab/format.js";

export class Findings {
  title = "Findings";

  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   */
  constructor(run, state) {
    this.run = run;
    this.state = state;
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
    const accesses = finding.accesses ?? [];
    const labels = finding.labels ?? [];
    return h("div", { class: "finding-detail" },
      labels.map(([line, text], index) => {
        const access = accesses.find((one) => one.line === line);
        const isTimed = access?.step !== undefined;
        return h("div", { class: "access" },
          h("span", { class: "order" }, index + 1),
          h("div", {},
            h("div", { class: "code" }, h("span", { class: "number" }, line), colored((this.run.lines[line - 1] ?? "").trim())),
            h("div", { class: "label" }, ticked(text)),
            isTimed ? h("button", {
              type: "button", class: "link", "data-step": access.step,
              onclick: () => this.state.set({ position: access.step, warp: access.warp, lane: access.lane }),
            }, `go to step ${grouped(access.step)}, ${this.run.nameOf(access.warp)} lane ${access.lane}`) : null));
      }),
      (finding.notes ?? []).map((note) => h("p", { class: "why-not" }, ticked(note))),
      (finding.helps ?? []).map((help) => h("p", { class: "help" }, h("b", {}, "Help: "), ticked(help))),
      labels.length ? null : h("pre", {}, finding.text));
  }
}

/** Text in which what is between backticks is code. @param {string} text */
export function ticked(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}
