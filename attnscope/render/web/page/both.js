// @ts-check
/** Two sides beside each other: what the query gives to each key on both, both matrices, and what side b gives more. */

import { behind, cut, draw, el, signedText, table, weightText } from "./elements.js";
import { css, figure, pixels, raster, scaleOf, scaleStrip, shadeColour, signedColour } from "./figure.js";
import { pairNow, set, state } from "./state.js";
import { rowOf } from "./weights.js";

/** @typedef {import("./weights.js").Seen} Seen */

const STEP = 17, NAMES = 132, BARS = 110, FIGURES = 44, LEFT = 86, TOP = 84, GAP = 22;

/** @param {any} _reading @param {any} page @returns {Promise<any[]>} */
export async function both(_reading, page) {
  const [first, second] = page.readings, [layer, head, other, another] = pairNow(page.given);
  if (!first.has(layer, head) || !second.has(other, another)) return [page.missing("The weights of this head on both sides")];
  const sides = [await first.seen(layer, head), await second.seen(other, another)], [a, b] = sides;
  const aligned = page.given.both.aligned && a.queries.length === b.queries.length && a.keys.length === b.keys.length;
  const names = [`a · L${layer} H${head}`, `b · L${other} H${another}`];
  const i = Math.max(rowOf(a.rows, state.query ?? first.it.opens.query ?? 0), 0);
  const rows = [i, aligned ? i : Math.max(rowOf(b.rows, state.other ?? second.it.opens.query ?? 0), 0)];
  const more = aligned ? differences(a, b) : null, digits = Math.min(a.digits, b.digits) - (a.about || b.about ? 0 : 1);
  const bars = row(sides, rows, names, more, digits, page.room()[0]), told = el("output", { class: "readout hint" });
  const boards = matrices(sides, rows, names, more, page.room()[0], (/** @type {string} */ text) => (told.textContent = text));
  page.figure(bars, "row", boards);
  const which = aligned ? `Query ${together(a.queries[rows[0]], b.queries[rows[1]])}, key by key; b − a is what side b gives more.` : `${a.queries[rows[0]]} on side a, ${b.queries[rows[1]]} on side b. The texts differ, so no difference is taken.`;
  return [el("ul", { class: "sides" }, page.readings.map((/** @type {any} */ each) => el("li", {}, each.it.name))), el("p", { class: "hint" }, `${which} A click in a matrix chooses its row.`),
    el("div", { class: "wide" }, bars), told, el("div", { class: "wide" }, boards), behind("These rows as a table", () => rowTable(sides, rows, more, digits))];
}

/** What side b gives more, no number where either masks. @param {Seen} a @param {Seen} b @returns {Float32Array} */
const differences = (a, b) => a.weights.map((w, i) => b.weights[i] - w);

/** What a row or column is called that has a name on each side. @param {string} a @param {string} b */
const together = (a, b) => (a === b ? a : `${a} | ${b}`);

/** @param {Float32Array} values */
const largest = (values) => values.reduce((most, each) => (Math.abs(each) > most ? Math.abs(each) : most), 0) || 1;

/** Bars of the two rows, key beside key where keys are the same. @param {Seen[]} sides @param {number[]} rows @param {string[]} names @param {Float32Array|null} more @param {number} digits @param {number} room */
function row(sides, rows, names, more, digits, room) {
  const narrow = room < 620, letters = narrow ? 72 : NAMES, unit = narrow ? 36 : BARS, part = unit + FIGURES + (narrow ? 8 : 14);
  const count = Math.max(...sides.map((side) => side.keys.length)), across = more ? letters + 3 * part : 2 * (letters + part) + 10;
  const drawn = figure(across, 26 + count * STEP + 6, "Weights of one query on both sides"), { svg } = drawn;
  sides.forEach((side, s) => {
    const x = more ? letters + s * part : letters + s * (letters + part + 10), width = side.keys.length, named = !more || s === 0;
    svg.append(draw("text", { x, y: 14, class: "axis" }, names[s]));
    side.keys.forEach((name, k) => {
      const w = side.weights[rows[s] * width + k], y = 26 + k * STEP;
      if (named) svg.append(draw("text", { x: x - 7, y: y + 11, "text-anchor": "end", class: "small name" }, cut(more ? together(name, sides[1].keys[k]) : name, narrow ? 10 : 20)));
      if (Number.isNaN(w)) return void svg.append(draw("text", { x, y: y + 11, class: "small" }, side.absent(rows[s], k)));
      svg.append(draw("rect", { x, y: y + 1, width: Math.max(w * unit, 0.5), height: STEP - 5, class: "bar" }), draw("text", { x: x + Math.max(w * unit, 0.5) + 4, y: y + 11, class: "small number", "data-side": s, "data-key": k }, weightText(w, side.digits)));
    });
  });
  if (more) signedBars(svg, more.subarray(rows[0] * count, (rows[0] + 1) * count), letters + 2 * part, unit, digits);
  return drawn;
}

/** What b gives more, right of the middle, or less. @param {any} svg @param {Float32Array} values @param {number} x @param {number} unit @param {number} digits */
function signedBars(svg, values, x, unit, digits) {
  const most = largest(values), middle = x + unit / 2;
  svg.append(draw("text", { x, y: 14, class: "axis" }, "b − a"), draw("line", { x1: middle, x2: middle, y1: 24, y2: 24 + values.length * STEP, class: "rule" }));
  values.forEach((value, k) => {
    if (Number.isNaN(value)) return;
    const wide = (Math.abs(value) / most) * (unit / 2), y = 26 + k * STEP;
    svg.append(draw("rect", { x: value < 0 ? middle - wide : middle, y: y + 1, width: Math.max(wide, 0.5), height: STEP - 5, fill: css(signedColour(value < 0 ? -0.8 : 0.8)) }),
      draw("text", { x: x + unit + 6, y: y + 11, class: "small number", "data-side": "difference", "data-key": k }, signedText(value, digits)));
  });
}

/** Both matrices and the difference, beside one another or, in a narrow window, below. @param {Seen[]} sides @param {number[]} rows @param {string[]} names @param {Float32Array|null} more @param {number} room @param {(text: string) => void} tell */
function matrices(sides, rows, names, more, room, tell) {
  const [a, b] = sides, shown = [a, b, ...(more ? [{ ...a, weights: more }] : [])], stacked = room < 560, across = stacked ? 1 : shown.length;
  const widest = Math.max(...sides.map((side) => side.keys.length)), tallest = Math.max(...sides.map((side) => side.queries.length));
  const cell = Math.max(Math.min((room - across * (LEFT + GAP)) / (across * widest), stacked ? 18 : 26), 0.4), wide = LEFT + widest * cell + GAP, tall = TOP + tallest * cell + 36;
  const drawn = figure(across * wide, tall * (stacked ? shown.length : 1), "Matrices of both sides"), { svg } = drawn;
  const scale = scaleOf(Float32Array.from([...a.weights, ...b.weights]), widest, state.scale === "row" ? "max" : state.scale);
  shown.forEach((side, s) => {
    const x = (stacked ? 0 : s * wide) + LEFT, y = (stacked ? s * tall : 0) + TOP, width = side.keys.length, height = side.queries.length;
    const signed = s === 2, most = signed ? largest(side.weights) : 1, ramp = pixels(signed ? (shade) => signedColour(2 * shade - 1) : shadeColour);
    const colours = Uint32Array.from(side.weights, (w) => (Number.isNaN(w) ? 0 : ramp[Math.round(signed ? 127.5 + (127.5 * w) / most : 255 * scale.shade(w, 0))]));
    drawn.pixels(raster(width, height, colours), [x, y, width * cell, height * cell]);
    svg.append(draw("text", { x: x - LEFT + 2, y: y - TOP + 13, class: "axis strong" }, signed ? "b − a" : names[s]), draw("rect", { x, y, width: width * cell, height: height * cell, class: "frame" }));
    labels(svg, side, x, y, cell);
    if (signed) signedStrip(svg, x, y + height * cell + 14, most);
    else scaleStrip(svg, x, y + height * cell + 14, { ...scale, told: stacked || s === 0 ? scale.told.replace(/, the largest weight$/, "") : "" });
    svg.append(draw("rect", { class: "cross", x, y: y + rows[s === 1 ? 1 : 0] * cell, width: width * cell, height: Math.max(cell, 1) }));
  });
  pointer(svg, { shown, cell, wide, tall, stacked, more, tell });
  return drawn;
}

/** @param {any} svg @param {Seen} side @param {number} x @param {number} y @param {number} cell */
function labels(svg, side, x, y, cell) {
  const every = Math.max(1, Math.ceil(10 / cell)), style = `font-size:${Math.min(11, Math.max(cell * 0.95, 8.5))}px`;
  side.queries.forEach((name, i) => i % every === 0 && svg.append(draw("text", { x: x - 4, y: y + (i + 0.5) * cell + 3.5, "text-anchor": "end", style, class: "label" }, cut(name, 12))));
  side.keys.forEach((name, k) => k % every === 0 && svg.append(draw("text", { transform: `translate(${x + (k + 0.5) * cell + 3.5} ${y - 4}) rotate(-90)`, style, class: "label" }, cut(name, 10))));
}

/** @param {any} svg @param {number} x @param {number} y @param {number} most */
function signedStrip(svg, x, y, most) {
  for (let i = 0; i < 24; i++) svg.append(draw("rect", { x: x + i * 4, y, width: 4.5, height: 8, fill: css(signedColour(i / 11.5 - 1)) }));
  svg.append(draw("text", { x: x + 104, y: y + 8, class: "small" }, `−${weightText(most, 2)} to +${weightText(most, 2)}`));
}

/** @param {any} svg @param {any} at */
function pointer(svg, { shown, cell, wide, tall, stacked, more, tell }) {
  const digits = Math.min(shown[0].digits, shown[1].digits), [a, b] = shown;
  const text = (/** @type {Seen} */ side, /** @type {number} */ q, /** @type {number} */ k) => {
    const w = side.weights[q * side.keys.length + k];
    return Number.isNaN(w) ? side.absent(q, k) : weightText(w, digits);
  };
  const place = (/** @type {any} */ event) => {
    const box = svg.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, s = stacked ? Math.floor(y / tall) : Math.floor(x / wide);
    const k = Math.floor((x - (stacked ? 0 : s * wide) - LEFT) / cell), q = Math.floor((y - (stacked ? s * tall : 0) - TOP) / cell), side = shown[s];
    return side && q >= 0 && k >= 0 && q < side.queries.length && k < side.keys.length ? [s, q, k] : null;
  };
  svg.addEventListener("pointermove", (/** @type {any} */ event) => {
    const at = place(event), [s, q, k] = at || [0, 0, 0], side = shown[s], i = q * side.keys.length + k;
    if (!at) return tell("");
    if (!more) return tell(`${"ab"[s]}: ${side.queries[q]} → ${side.keys[k]}: ${text(side, q, k)}`);
    const keys = together(`${a.queries[q]} → ${a.keys[k]}`, `${b.queries[q]} → ${b.keys[k]}`);
    tell(`${keys}: a ${text(a, q, k)}, b ${text(b, q, k)}${Number.isNaN(more[i]) ? "" : `, b − a ${signedText(more[i], digits - 1)}`}`);
  });
  svg.addEventListener("pointerleave", () => tell(""));
  svg.addEventListener("click", (/** @type {any} */ event) => {
    const at = place(event);
    if (at) set(at[0] === 1 && !more ? { other: shown[1].rows[at[1]][0] } : { query: a.rows[at[1]][0] });
  });
}

/** @param {Seen[]} sides @param {number[]} rows @param {Float32Array|null} more @param {number} digits */
function rowTable(sides, rows, more, digits) {
  const told = (/** @type {Seen} */ side, /** @type {number} */ row, /** @type {number} */ k) => (k >= side.keys.length ? "" : Number.isNaN(side.weights[row * side.keys.length + k]) ? side.absent(row, k) : weightText(side.weights[row * side.keys.length + k], side.digits));
  const [a, b] = sides, count = Math.max(a.keys.length, b.keys.length), width = a.keys.length;
  if (more) return table(`Query ${a.queries[rows[0]]} on both sides`, ["key", "a", "b", "b − a"], a.keys.map((name, k) => [together(name, b.keys[k]), told(a, rows[0], k), told(b, rows[1], k), signedText(more[rows[0] * width + k], digits)]));
  return table("The word's row on each side", ["key of a", "a", "key of b", "b"], Array.from({ length: count }, (_, k) => [a.keys[k] ?? "", told(a, rows[0], k), b.keys[k] ?? "", told(b, rows[1], k)]));
}
