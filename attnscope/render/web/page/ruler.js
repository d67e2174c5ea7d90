// @ts-check
/** All of a long text in small beside it: on the left what the chosen token looks at, on the right what looks at it. */

import { el } from "./elements.js";

const WIDE = 26, MIDDLE = 13;

/** @param {(i: number) => void} go shows the token at a place */
export function ruler(go) {
  const root = el("canvas", { class: "ruler", "aria-hidden": "true" }), pen = root.getContext("2d");
  let count = 1;
  root.addEventListener("click", (/** @type {any} */ event) => {
    const box = root.getBoundingClientRect();
    go(Math.min(count - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * count))));
  });
  let tall = 120;
  /** @type {Record<string, string>} */
  let colours = {};
  /** Its size and its colours, which a pointer that moves does not change. */
  function fit() {
    const style = getComputedStyle(root), fine = Math.min(devicePixelRatio, 2);
    colours = Object.fromEntries(["rule", "line", "asks", "chosen"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    tall = Math.max(120, Math.min(innerHeight - 40, 720, root.parentElement.clientHeight));
    root.width = WIDE * fine, root.height = tall * fine, (root.style.height = `${tall}px`);
    pen.scale(fine, fine);
  }
  /** @param {Int32Array[]} values as the text is painted with @param {boolean} own @param {number} query */
  function draw(values, own, query) {
    const colour = (/** @type {string} */ name) => colours[name], [asking, looked] = [values[0], own ? values[0] : values[1]];
    count = asking.length;
    pen.clearRect(0, 0, WIDE, tall);
    pen.fillStyle = colour("rule"), pen.fillRect(MIDDLE - 0.5, 0, 1, tall);
    const marks = (/** @type {Int32Array} */ of, /** @type {(v: number) => number} */ share, /** @type {number} */ way, /** @type {string} */ name) => {
      pen.fillStyle = colour(name);
      of.forEach((value, i) => {
        const s = share(value), wide = 12 * s;
        if (s > 0.1) pen.fillRect(way < 0 ? MIDDLE - 1 - wide : MIDDLE + 1, (i / of.length) * tall, wide, Math.max(1.6, tall / of.length));
      });
    };
    marks(looked, (value) => (value & 63) / 32, -1, "line");
    marks(asking, (value) => ((value >> 6) & 7) / 6, 1, "asks");
    pen.fillStyle = colour("chosen");
    if (query >= 0) pen.fillRect(MIDDLE - 5, (query / count) * tall - 1, 10, 3);
  }
  return { root, fit, draw };
}
