/** A view whose content is asked for at each position and fills one part that scrolls. */

import { fill, h } from "lab/dom.js";
import { latest } from "lab/state.js";

/** @abstract */
export class Panel {
  /**
   * @param {import("lab/run.js").Run} run
   * @param {import("lab/state.js").State} state
   * @param {string} kind a class of the part that scrolls
   */
  constructor(run, state, kind = "") {
    this.run = run;
    this.state = state;
    this.body = h("div", { class: `scroll ${kind}`.trim() });
    this.element = h("div", { class: "view" }, this.body);
    this.update = latest((now) => this.ask(now), (found, now) => this.show(found, now), (wrong) => fill(this.body, h("p", { class: "problem" }, wrong.message)));
  }

  /**
   * What is shown at a position.
   * @param {import("lab/state.js").Looked} now
   * @returns {Promise<any>}
   */
  ask(now) {
    throw new Error(`nothing is known at ${now.position}`);
  }

  /**
   * @param {any} found
   * @param {import("lab/state.js").Looked} now
   */
  show(found, now) {
    throw new Error(`nothing shows ${found} at ${now.position}`);
  }
}
