// @ts-check
/** Lines between queries and keys: of one query, or of all; of one head, or of several in colours. */

import { behind, cut, draw, el, table, weightCell, weightText } from "./elements.js";
import { figure, headColour, scaleOf } from "./figure.js";
import { set, state } from "./state.js";
import { rowOf } from "./weights.js";

const STEP = 19, MOST_LINES = 4000;

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function lines(reading, page) {
  const heads = [[state.layer, state.head], ...state.more.filter((/** @type {number[]} */ [l, h]) => reading.has(l, h))];
  const seen = await Promise.all(heads.map(([layer, head]) => reading.seen(layer, head)));
  const first = seen[0], query = rowOf(first.rows, state.query), key = rowOf(first.columns, state.key);
  const drawn = columns(heads, seen, query, key, page.room()[0] - 8);
  page.figure(drawn, "lines");
  const told = el("p", { class: "hint" }, query < 0 ? "All queries. Choose a token on the left for what it looks at, on the right for who looks at it."
    : `What ${first.queries[query]} looks at. A token on the right shows who looks at it; a second click shows all.`);
  return [heads.length > 1 && legend(heads), told, el("div", { class: "wide" }, drawn),
    behind("These weights as a table", () => weightsTable(first, query))];
}

/** Queries on the left, keys on the right. @param {number[][]} heads @param {any[]} seen @param {number} query @param {number} key @param {number} room */
function columns(heads, seen, query, key, room) {
  const { queries, keys, weights } = seen[0], width = keys.length, scale = scaleOf(weights, width, state.scale), wide = room > 560, SIDE = wide ? 150 : 84, BARS = wide ? 130 : 96, letters = wide ? 20 : 11;
  const GAP = Math.min(Math.max(room - 2 * SIDE - BARS, 90), 300);
  const tall = Math.max(queries.length, keys.length) * STEP + 34, across = SIDE * 2 + GAP + BARS;
  const drawn = figure(across, tall, `Weights from ${queries.length} queries to ${width} keys as lines`), { svg } = drawn;
  svg.setAttribute("role", "group");
  const y = (/** @type {number} */ i) => 34 + i * STEP;
  svg.append(draw("text", { x: SIDE - 8, y: 14, class: "axis", "text-anchor": "end" }, "query"), draw("text", { x: SIDE + GAP + 8, y: 14, class: "axis" }, "key"));
  const lines = draw("g", { "stroke-linecap": "round", fill: "none" });
  svg.append(lines);
  for (const { q, k, w, h } of strongest(seen, query, key)) {
    const shift = (h - (heads.length - 1) / 2) * 1.6, a = y(q) - 5 + shift, b = y(k) - 5 + shift;
    lines.append(draw("path", { d: `M${SIDE} ${a}C${SIDE + GAP / 2} ${a} ${SIDE + GAP / 2} ${b} ${SIDE + GAP} ${b}`, stroke: heads.length > 1 ? headColour(h) : "var(--line)", "stroke-opacity": Math.max(scale.shade(w, q), 0.03).toFixed(3), "stroke-width": (0.6 + 3 * w).toFixed(2), "data-weight": w }));
  }
  side(svg, queries, SIDE - 8, "end", y, query, (i) => set({ query: i === query ? null : seen[0].rows[i][0], key: null }), "query", letters);
  side(svg, keys, SIDE + GAP + 8, "start", y, key, (i) => set(query < 0 ? { key: i === key ? null : seen[0].columns[i][0] } : { query: null, key: seen[0].columns[i][0] }), "key", letters);
  if (heads.length === 1) numbers(svg, seen[0], query, key, y, SIDE * 2 + GAP, BARS - 46);
  return drawn;
}

/** A weight beside every token that the chosen one looks at, or is looked at by. @param {any} svg @param {any} seen @param {number} query @param {number} key @param {(i: number) => number} y @param {number} from @param {number} unit how wide a weight of 1 is */
function numbers(svg, seen, query, key, y, from, unit) {
  const width = seen.keys.length;
  if (query < 0) return;
  const row = seen.weights.subarray(query * width, (query + 1) * width);
  row.forEach((/** @type {number} */ w, /** @type {number} */ k) => {
    if (Number.isNaN(w)) return;
    svg.append(draw("rect", { x: from, y: y(k) - 12, width: Math.max(w * unit, 0.5), height: 11, class: k === key ? "bar chosen" : "bar" }),
      draw("text", { x: from + w * unit + 4, y: y(k) - 2, class: "small number", "data-key": k }, weightText(w, seen.digits)));
  });
}

/** The tokens of one side. @param {any} svg @param {string[]} names @param {number} x @param {string} anchor @param {(i: number) => number} y @param {number} chosen @param {(i: number) => void} choose @param {string} what @param {number} letters */
function side(svg, names, x, anchor, y, chosen, choose, what, letters) {
  names.forEach((name, i) => {
    const pick = (/** @type {any} */ event) => (event.type === "click" || event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose(i));
    svg.append(draw("text", { x, y: y(i), "text-anchor": anchor, class: i === chosen ? "word chosen" : "word", tabindex: i === Math.max(chosen, 0) ? 0 : -1, role: "button", "aria-label": `${what} ${name}`, [`data-${what}`]: i, click: pick, keydown: pick },
      name.length > letters && draw("title", {}, name), cut(name, letters)));
  });
}

/** The lines that are drawn: of the chosen query or key, or the strongest of all. @param {any[]} seen @param {number} query @param {number} key */
function strongest(seen, query, key) {
  const found = seen.flatMap((each, h) => {
    const width = each.keys.length, all = [];
    for (let i = 0; i < each.weights.length; i++) {
      const q = Math.floor(i / width), k = i % width, w = each.weights[i];
      if (!Number.isNaN(w) && (query < 0 ? key < 0 || k === key : q === query) && w > 0.004) all.push({ q, k, w, h });
    }
    return all;
  });
  found.sort((a, b) => b.w - a.w);
  return found.slice(0, MOST_LINES).reverse();
}

/** Which colour is which head. @param {number[][]} heads */
function legend(heads) {
  return el("p", { class: "legend" }, heads.map(([l, h], i) => el("button", { class: "chip", title: "leave this head out", click: () => i && set({ more: state.more.filter((/** @type {number[]} */ m) => m[0] !== l || m[1] !== h) }) },
    el("i", { style: `background:${headColour(i)}` }), `L${l} H${h}`)));
}

/** @param {any} seen @param {number} query */
export function weightsTable(seen, query) {
  const width = seen.keys.length;
  if (query >= 0) {
    const row = [...seen.weights.subarray(query * width, (query + 1) * width)].map((w, k) => [w, k]);
    return table(`Weights of query ${seen.queries[query]}`, ["key", "position", "weight"], row.map(([w, k]) => [seen.keys[k], String(seen.columns[k][0]), Number.isNaN(w) ? seen.absent(query, k) : weightText(w, seen.digits)]));
  }
  const shown = Math.min(seen.queries.length, 64);
  return table(shown < seen.queries.length ? "The first 64 queries; choose one for its row" : "Weights, queries in rows", ["query", ...seen.keys],
    seen.queries.slice(0, shown).map((/** @type {string} */ name, /** @type {number} */ q) => [name, ...[...seen.weights.subarray(q * width, (q + 1) * width)].map((w) => weightCell(w, Math.min(seen.digits, 3)))]));
}
