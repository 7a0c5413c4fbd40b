/** Where each warp of the block is. */

import { fill, h } from "lab/dom.js";
import { bitCount } from "lab/register.js";
import { colored } from "lab/listing.js";
import { grouped } from "lab/format.js";
import { Panel } from "lab/panel.js";

export class Warps extends Panel {
  title = "Warps";

  /** @param {import("lab/state.js").Looked} now */
  async ask(now) {
    const { run } = this;
    return run.places(run.blockOf(now.warp), now.position);
  }

  /**
   * @param {import("lab/run.js").Place[]} places
   * @param {import("lab/state.js").Looked} now
   */
  show(places, now) {
    fill(this.body, h("table", { class: "warps" },
      h("thead", {}, h("tr", {}, ["Warp", "Line", "Executes next", "Lanes", "At step"].map((one) => h("th", {}, one)))),
      h("tbody", {}, places.map((one) => {
        const at = one.instruction >= 0 ? one.instruction : one.instructionBefore;
        const line = at >= 0 ? this.run.instructions[at].line : 0;
        return h("tr", {
          class: `${one.warp === now.warp ? "own" : ""} ${one.ended ? "ended" : ""}`, "data-warp": one.warp, tabindex: 0,
          onclick: () => this.state.set({ warp: one.warp }),
          onkeydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") this.state.set({ warp: one.warp }); },
        },
        h("td", { class: "num" }, this.run.warpInBlock(one.warp)),
        h("td", { class: "num" }, line || ""),
        h("td", { class: "code" }, one.ended ? h("span", { class: "note" }, this.ending(one)) : colored(this.run.texts[at] ?? "")),
        h("td", { class: "num" }, one.active ? bitCount(one.active) : ""),
        h("td", { class: "num" }, one.step >= 0
          ? h("button", { type: "button", class: "link", onclick: (/** @type {Event} */ event) => { event.stopPropagation(); this.state.set({ warp: one.warp, position: one.step }); } }, grouped(one.step))
          : ""));
      }))));
  }

  /** @param {import("lab/run.js").Place} place */
  ending(place) {
    if (place.instructionBefore < 0) return "nothing is recorded of it";
    return this.run.info.complete ? "it has ended" : `no step is recorded after: ${this.run.texts[place.instructionBefore]}`;
  }
}
