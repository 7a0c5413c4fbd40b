/** The page: asks for the launch, or several that ran at the same time, and puts its views in place. */

import { fill, h, startTips, whileIdle } from "lab/dom.js";
import { grouped, tuple } from "lab/format.js";
import { Run } from "lab/run.js";
import { startPalette } from "lab/palette.js";
import { sourceOfPage } from "lab/source.js";
import { State, remembered } from "lab/state.js";
import { Arrays } from "lab/arrays.js";
import { Barriers } from "lab/barriers.js";
import { Code } from "lab/code.js";
import { Copies } from "lab/copies.js";
import { Findings } from "lab/findings.js";
import { Fragments } from "lab/fragments.js";
import { Node } from "lab/node.js";
import { Origin } from "lab/origin.js";
import { Ranks } from "lab/ranks.js";
import { RanksTimeline } from "lab/ranks_timeline.js";
import { Registers } from "lab/registers.js";
import { Shared } from "lab/shared.js";
import { Tensor } from "lab/tensor.js";
import { Tiles } from "lab/tiles.js";
import { Time } from "lab/time.js";
import { Timeline } from "lab/timeline.js";
import { Variables } from "lab/variables.js";
import { Warps } from "lab/warps.js";

/** @typedef {{ title: string, element: HTMLElement, update: (now: import("lab/state.js").Looked) => void, prepare?: () => Iterable<void> }} View */

/** @param {string} id @returns {HTMLElement} */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

export async function start() {
  theme(stored("theme"));
  startTips();
  startPalette();
  divider();
  const source = sourceOfPage();
  try {
    if (!document.documentElement.dataset.node) {
      await open(source, null, remembered());
      return;
    }
    const node = new Node(source, await source.get("node"));
    node.open = (launch, time, warp) => {
      node.pinned = time;
      const { lane, tab } = node.state?.now ?? {};
      open(source, node, { launch, position: node.positionAt(launch, time), lane, tab, ...(warp === undefined ? {} : { warp }) });
    };
    await open(source, node, remembered());
  } catch (wrong) {
    fill(part("inspector"), h("p", { class: "problem" }, wrong instanceof Error ? wrong.message : String(wrong)));
  }
}

/**
 * Show a launch.
 * @param {import("lab/source.js").Kept} whole
 * @param {Node | null} node the launches of which it is one
 * @param {Partial<import("lab/state.js").Looked>} given where
 */
async function open(whole, node, given) {
  const launch = node ? Math.min(given.launch ?? node.launch, node.launches.length - 1) : 0;
  const run = node ? await node.run(launch) : new Run(whole, await whole.get("run"));
  const { info, source } = run;
  const first = run.blocks[0]?.warps[0] ?? 0;
  const known = { ...info.start, ...given };
  const warps = new Set(run.blocks.flatMap((one) => one.warps));
  const tab = known.tab ?? (run.findings.length ? "findings" : node ? "ranks" : "registers");
  const state = new State({
    launch, position: Math.min(known.position ?? 0, run.count), warp: warps.has(known.warp ?? -1) ? known.warp ?? first : first,
    lane: Math.min(known.lane ?? 0, 31), tab, marks: null, subject: null,
  });
  if (node) {
    node.launch = launch;
    node.time = node.pinned ?? node.timeAt(launch, state.now.position);
    node.pinned = null;
    node.follow(state);
  }
  document.title = `${info.kernel} · ptxlab lab`;
  drawHead(run, state, node);
  fill(part("remarks"), info.remarks.map((/** @type {string} */ one) => h("p", { class: "remark" }, one)));
  if (!run.count) {
    fill(part("inspector"), h("p", { class: "problem" }, `No step is recorded: ${info.end}.`));
  }
  const code = new Code(part("code"), run, state);
  const time = new Time(part("time"), run, state);
  const timeline = node ? new RanksTimeline(part("timeline"), run, state, node) : new Timeline(part("timeline"), run, state);
  const views = viewsOf(run, state, node);
  inspector(part("inspector"), views, state);
  if (source.kind === "served") {
    state.listen(() => source.prepareNext(run.windowOf(run.count) + 1));
    if (!document.documentElement.dataset.ready) requestAnimationFrame(() => setTimeout(() => whole.get("prepare"), 0));
  }
  panes(state);
  Object.assign(window, { lab: { run, state, time, timeline, views, node } });
  document.documentElement.dataset.ready = "yes";
  whileIdle((function* () {
    yield* code.prepare();
    yield* views.registers.prepare?.() ?? [];
  })());
}

/**
 * The views that this launch has something for.
 * @param {import("lab/run.js").Run} run
 * @param {State} state
 * @param {Node | null} node
 * @returns {Record<string, View>}
 */
function viewsOf(run, state, node) {
  const { info } = run;
  const hasMatrices = Object.keys(info.layouts.instructions).length > 0;
  return {
    ...(run.findings.length ? { findings: new Findings(run, state, node) } : {}),
    ...(node ? { ranks: new Ranks(run, state, node) } : {}),
    registers: new Registers(run, state),
    variables: new Variables(run, state),
    warps: new Warps(run, state),
    ...(hasMatrices ? { fragments: new Fragments(run, state) } : {}),
    ...(info.shared.size ? { shared: new Shared(run, state) } : {}),
    ...(info.hasTiles ? { tiles: new Tiles(run, state) } : {}),
    ...(info.hasCopies ? { copies: new Copies(run, state) } : {}),
    ...(info.hasTensorMemory ? { tensor: new Tensor(run, state) } : {}),
    arrays: new Arrays(run, state),
    barriers: new Barriers(run, state),
    origin: new Origin(run, state),
  };
}

/**
 * @param {import("lab/run.js").Run} run
 * @param {State} state
 * @param {Node | null} node
 */
function drawHead(run, state, node) {
  const { info } = run;
  const errors = run.findings.filter((one) => one.level === "error").length;
  const warnings = run.findings.length - errors;
  const blocks = run.blocks.length > 1 ? blockChoice(run, state) : null;
  fill(part("head"),
    node ? rankChoice(node) : null,
    h("h1", {}, info.kernel),
    h("span", { class: "facts" },
      fact("grid", info.grid.map(String).join(" × ").replace(/( × 1)+$/, "")), fact("block", info.block.map(String).join(" × ").replace(/( × 1)+$/, "")),
      fact("seed", info.seed), fact("steps of threads", grouped(info.threadSteps))),
    h("span", { class: "space" }),
    blocks,
    errors || warnings
      ? h("button", { type: "button", class: `flag ${errors ? "error" : "warning"}`, id: "to-findings", onclick: () => state.set({ tab: "findings", subject: { finding: 0 } }) },
        [errors ? `${errors} error${errors > 1 ? "s" : ""}` : "", warnings ? `${warnings} warning${warnings > 1 ? "s" : ""}` : ""].filter(Boolean).join(", "))
      : h("span", { class: "fine" }, info.complete ? "no findings" : info.end),
    h("button", { type: "button", id: "theme", class: "icon", "aria-label": "Light or dark", "data-tip": "Light or dark", onclick: () => theme(isDark() ? "light" : "dark") }, "◐"));
}

/** The launch that is shown, of several that ran at the same time. @param {Node} node */
function rankChoice(node) {
  const made = /** @type {HTMLSelectElement} */ (h("select", {
    "aria-label": "Launch", id: "launch", onchange: () => node.go(Number(made.value), node.time),
  }, node.launches.map((one, number) => h("option", { value: number }, one.title))));
  made.value = String(node.launch);
  return made;
}

/**
 * @param {import("lab/run.js").Run} run
 * @param {State} state
 */
function blockChoice(run, state) {
  const made = /** @type {HTMLSelectElement} */ (h("select", {
    "aria-label": "Block", id: "block",
    onchange: () => {
      const block = run.blocks.find((one) => one.number === Number(made.value));
      if (block) state.set({ warp: block.warps[0], position: Math.min(Math.max(state.now.position, block.first), block.last) });
    },
  }, run.blocks.slice(0, 4096).map((one) => h("option", { value: one.number }, `block ${tuple(one.index)}`))));
  state.listen((now) => run.settled(now).then(() => { made.value = String(run.blockOf(state.now.warp)); }));
  made.value = String(run.blockOf(state.now.warp));
  return made;
}

/**
 * @param {string} name
 * @param {any} value
 */
function fact(name, value) {
  return h("span", { class: "fact" }, h("i", {}, name), " ", String(value));
}

/**
 * The views in tabs; the one that is chosen follows the position.
 * @param {HTMLElement} element
 * @param {Record<string, View>} views
 * @param {State} state
 */
function inspector(element, views, state) {
  const names = Object.keys(views);
  const tabs = h("div", { class: "tabs", role: "tablist" }, names.map((name) => h("button", {
    type: "button", role: "tab", id: `tab-${name}`, onclick: () => state.set({ tab: name }),
  }, views[name].title)));
  const body = h("div", { class: "tab-body" });
  fill(element, tabs, body);
  /** @param {import("lab/state.js").Looked} now */
  const show = (now) => {
    const name = views[now.tab] ? now.tab : names[0];
    for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.id === `tab-${name}`));
    if (body.firstElementChild !== views[name].element) fill(body, views[name].element);
    views[name].update(now);
  };
  state.listen((now, before) => {
    if (now.tab !== before.tab || now.position !== before.position || now.warp !== before.warp || now.lane !== before.lane || now.subject !== before.subject) show(now);
  });
  tabs.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.stopPropagation();
    event.preventDefault();
    const at = names.indexOf(views[state.now.tab] ? state.now.tab : names[0]);
    const next = names[(at + by + names.length) % names.length];
    state.set({ tab: next });
    part(`tab-${next}`).focus();
  });
  show(state.now);
}

/** The width of the source, dragged or by keys. */
function divider() {
  const handle = part("divider");
  const set = (/** @type {number} */ percent) => {
    document.documentElement.style.setProperty("--code", `${Math.max(20, Math.min(75, percent))}%`);
  };
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    const move = (/** @type {PointerEvent} */ moved) => set((100 * moved.clientX) / window.innerWidth);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
  });
  handle.addEventListener("keydown", (event) => {
    const now = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--code"));
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.stopPropagation();
      set(now + (event.key === "ArrowLeft" ? -2 : 2));
    }
  });
}

/** On a narrow screen one pane is seen at a time; where another view is chosen, that is the one with the views. @param {State} state */
function panes(state) {
  const choose = (/** @type {string} */ pane) => {
    document.body.dataset.pane = pane;
    for (const one of part("panes").children) one.setAttribute("aria-pressed", String(one.getAttribute("data-pane") === pane));
  };
  fill(part("panes"), [["code", "Source"], ["inspector", "State"], ["time", "Timeline"]].map(([pane, text]) =>
    h("button", { type: "button", "data-pane": pane, onclick: () => choose(pane) }, text)));
  choose(document.body.dataset.pane ?? "code");
  state.listen((now, before) => { if (now.tab !== before.tab || (now.subject && now.subject !== before.subject)) choose("inspector"); });
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

/** @param {string | null} chosen */
function theme(chosen) {
  if (chosen !== "light" && chosen !== "dark") return;
  document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem("ptxlab-theme", chosen);
  } catch {
    // A file that is opened from a disk may not store anything.
  }
  document.dispatchEvent(new Event("theme"));
}

/** @param {string} name */
function stored(name) {
  try {
    return localStorage.getItem(`ptxlab-${name}`);
  } catch {
    return null;
  }
}
