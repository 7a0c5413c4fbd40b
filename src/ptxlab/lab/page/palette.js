/** The colors of the style for what is drawn on a canvas; `listen` says when they change. */

/** @type {Map<string, string>} to ask for one has the browser compute it */
const known = new Map();
/** @type {Array<() => void>} */
const listeners = [];

/** A color or a font of the style, by its name there. @param {string} name */
export function styled(name) {
  const found = known.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  known.set(name, found);
  return found;
}

/** @param {() => void} changed */
export function listen(changed) {
  listeners.push(changed);
}

export function startPalette() {
  const restyle = () => {
    known.clear();
    for (const changed of listeners) changed();
  };
  document.addEventListener("theme", restyle);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
}

/**
 * Make a canvas as large as it is shown; what was on it is gone.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D}
 */
export function cleared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
