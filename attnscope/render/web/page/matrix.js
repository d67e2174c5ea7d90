// @ts-check
/** One head as a matrix: queries in rows, keys in columns, masked cells blank, values where they fit. */

import { behind, cut, draw, el, weightCell, weightText } from "./elements.js";
import { figure, inkOn, pixels, raster, scaleOf, scaleStrip, shadeColour } from "./figure.js";
import { weightsTable } from "./lines.js";
import { point, set, state } from "./state.js";
import { placed, rowOf } from "./weights.js";

/** @type {Record<string, string>} */
const ABSENT = { masked: "masked: may not be looked at", "not kept": "not kept: not among the largest of its row" };
const WITH_VALUES = 26, WITH_NAMES = 10, MOST_VALUES = 1200, LEFT = 112, TOP = 76;

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function matrix(reading, page) {
  const seen = await reading.seen(state.layer, state.head), { queries, keys, weights } = seen;
  const rows = queries.length, width = keys.length, scale = scaleOf(weights, width, state.scale);
  const cell = sizeOf(rows, width, page.room());
  const drawn = figure(LEFT + width * cell + 14, TOP + rows * cell + 34, `Matrix of ${rows} queries by ${width} keys`), { svg } = drawn;
  const ramp = pixels(shadeColour);
  const colours = new Uint32Array(rows * width);
  weights.forEach((/** @type {number} */ w, /** @type {number} */ i) => (colours[i] = Number.isNaN(w) ? 0 : ramp[Math.round(255 * scale.shade(w, Math.floor(i / width)))]));
  const canvas = raster(width, rows, colours);
  drawn.pixels(canvas, [LEFT, TOP, width * cell, rows * cell], cell % 1 > 0);
  svg.append(draw("rect", { x: LEFT, y: TOP, width: width * cell, height: rows * cell, class: "frame" }));
  axes(svg, queries, keys, cell);
  if (cell >= WITH_VALUES && rows * width <= MOST_VALUES) values(svg, seen, scale, cell);
  scaleStrip(svg, LEFT, TOP + rows * cell + 14, scale);
  const told = el("output", { class: "readout", "aria-live": "polite" });
  page.pointing = pointer(drawn, seen, cell, told);
  page.figure(drawn, "matrix");
  return [told, el("div", { class: "wide" }, drawn), behind("These weights as a table", () => weightsTable(seen, rows * width > 4096 ? Math.max(rowOf(seen.rows, state.query), 0) : -1))];
}

/** How large a cell is in the room there is. @param {number} rows @param {number} width @param {number[]} room */
function sizeOf(rows, width, [wide, tall]) {
  const fit = Math.min((wide - LEFT - 20) / width, Math.max(tall - TOP - 60, rows <= 110 ? 40 * rows : 330, 330) / rows);
  return fit >= 3 ? Math.min(Math.floor(fit), 30) : Math.max(fit, 0.5);
}

/** @param {any} svg @param {string[]} queries @param {string[]} keys @param {number} cell */
function axes(svg, queries, keys, cell) {
  const every = Math.max(1, Math.ceil(WITH_NAMES / cell)), size = Math.min(13, Math.max(cell * 0.95, 9));
  queries.forEach((name, i) => i % every === 0 && svg.append(draw("text", { x: LEFT - 5, y: TOP + (i + 0.5) * cell + size / 3, "text-anchor": "end", style: `font-size:${size}px`, class: "label" }, cut(name, size > 11 ? 14 : 17))));
  keys.forEach((name, k) => {
    const x = LEFT + (k + 0.5) * cell + size / 3;
    if (k % every === 0) svg.append(draw("text", { transform: `translate(${x} ${TOP - 5}) rotate(-90)`, style: `font-size:${size}px`, class: "label" }, cut(name, size > 11 ? 11 : 14)));
  });
  svg.append(draw("text", { x: 2, y: TOP - 8, class: "axis" }, "query ↓"), draw("text", { x: LEFT - 5, y: 12, class: "axis", "text-anchor": "end" }, "key →"));
}

/** @param {any} svg @param {any} seen @param {any} scale @param {number} cell */
function values(svg, seen, scale, cell) {
  const width = seen.keys.length, digits = cell < 38 ? 2 : 3;
  seen.weights.forEach((/** @type {number} */ w, /** @type {number} */ i) => {
    if (Number.isNaN(w)) return;
    const q = Math.floor(i / width), ink = inkOn(shadeColour(scale.shade(w, q)));
    svg.append(draw("text", { x: LEFT + ((i % width) + 0.5) * cell, y: TOP + (q + 0.5) * cell + 4, "text-anchor": "middle", fill: ink, class: "value" }, weightCell(w, Math.min(digits, seen.digits))));
  });
}

/** Hover tells the weight of a cell, a click keeps it; what it returns follows a pointer elsewhere. @param {any} drawn @param {any} seen @param {number} cell @param {any} told */
function pointer(drawn, seen, cell, told) {
  const { svg } = drawn, width = seen.keys.length, rows = seen.queries.length;
  const across = draw("rect", { class: "cross", height: Math.max(cell, 1), width: width * cell, x: LEFT, visibility: "hidden" });
  const down = draw("rect", { class: "cross", width: Math.max(cell, 1), height: rows * cell, y: TOP, visibility: "hidden" });
  svg.append(across, down);
  const show = (/** @type {number} */ q, /** @type {number} */ k) => {
    const w = seen.weights[q * width + k];
    const told_weight = Number.isNaN(w) ? ABSENT[seen.absent(q, k)] : `${seen.about ? "about " : ""}${weightText(w, seen.digits)}`;
    told.textContent = `${placed(seen, seen.rows[q], seen.queries[q])} → ${placed(seen, seen.columns[k], seen.keys[k])}: ${told_weight}`;
    across.setAttribute("y", String(TOP + q * cell)), down.setAttribute("x", String(LEFT + k * cell));
    for (const each of [across, down]) each.setAttribute("visibility", "visible");
  };
  const follow = () => {
    const at = state.hover || state, q = rowOf(seen.rows, at.query ?? null), k = rowOf(seen.columns, at.key ?? null);
    told.classList.toggle("hint", q < 0 && k < 0);
    if (q >= 0) return show(q, k >= 0 ? k : strongestKey(seen, q));
    told.textContent = k < 0 ? "Point at a cell for its weight; click to choose its query and key." : `${placed(seen, seen.columns[k], seen.keys[k])}: a column, what looks at it`;
    across.setAttribute("visibility", "hidden"), down.setAttribute("visibility", k < 0 ? "hidden" : "visible");
    if (k >= 0) down.setAttribute("x", String(LEFT + k * cell));
  };
  const place = (/** @type {any} */ event) => {
    const box = svg.getBoundingClientRect(), k = Math.floor((event.clientX - box.left - LEFT) / cell), q = Math.floor((event.clientY - box.top - TOP) / cell);
    return q >= 0 && k >= 0 && q < rows && k < width ? { query: seen.rows[q][0], key: seen.columns[k][0] } : null;
  };
  svg.addEventListener("pointermove", (/** @type {any} */ event) => {
    const at = place(event);
    if (at?.query !== state.hover?.query || at?.key !== state.hover?.key) point(at);
  });
  svg.addEventListener("pointerleave", () => state.hover && point(null));
  svg.addEventListener("click", (/** @type {any} */ event) => {
    const at = place(event);
    if (at) set(at);
  });
  follow();
  return follow;
}

/** @param {any} seen @param {number} q */
export function strongestKey(seen, q) {
  const width = seen.keys.length;
  let best = 0;
  for (let k = 1; k < width; k++) if (!(seen.weights[q * width + best] >= seen.weights[q * width + k]) && !Number.isNaN(seen.weights[q * width + k])) best = k;
  return best;
}
