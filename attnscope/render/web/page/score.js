// @ts-check
/**
 * What a score is made of: of one query with every key product, scale, cap, what is added, mask and weight; and the product with one
 * key, dimension by dimension.
 */

import { behind, cut, draw, el, numberText, parameterText, table, weightText } from "./elements.js";
import { css, figure, inkOn, pixels, raster, shadeColour, signedColour } from "./figure.js";
import { set, state } from "./state.js";
import { floats } from "./weights.js";

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function parts(reading, page) {
  const full = reading.full(state.layer, state.head);
  if (!full || !full.q) return [page.missing("The scores of this head")];
  const names = reading.keys.names, width = names.length, weights = await reading.weights(state.layer, state.head);
  const query = Math.min(state.query ?? page.liveliest(weights, width), reading.queries.names.length - 1);
  const raw = await scores(full, query, width), added = await Promise.all(full.terms.map((/** @type {any} */ term) => floats(term.values)));
  const capped = full.softcap ? raw.map((s) => full.softcap * Math.tanh((s * full.scale) / full.softcap)) : null;
  const held = full.scaled ? (await floats(full.scaled)).subarray(query * width, (query + 1) * width) : null;
  const heads = ["key", "q·k", `x ${parameterText(full.scale)}`, full.softcap && `capped ±${parameterText(full.softcap)}`, ...full.terms.map((/** @type {any} */ t) => `+ ${t.name}`), "score", "weight"].filter(Boolean);
  const rows = names.map((/** @type {string} */ name, /** @type {number} */ k) => {
    const w = weights[query * width + k], masked = Number.isNaN(w), terms = added.map((each) => each[query * width + k]);
    const product = raw[k] * full.scale, score = held ? held[k] : (capped ? capped[k] : product) + terms.reduce((a, b) => a + b, 0);
    return [`${k} ${name}`, numberText(raw[k]), numberText(product), ...(capped ? [numberText(capped[k])] : []), ...terms.map((t) => numberText(t)), masked ? "masked" : numberText(score), masked ? "" : bar(w, reading.digits(state.layer, state.head))];
  });
  const sink = full.sink === null ? null : el("p", { class: "hint" }, `A sink with the logit ${numberText(full.sink)}${full.sinkByQuery ? " on average" : ""} takes a share of its own: rows sum to less than 1.`);
  page.figure(null, "parts");
  return [el("p", { class: "hint" }, `Query ${query} ${reading.queries.names[query]}: each key from the product to the weight. The softmax over the scores makes the weights.`), sink,
    el("div", { class: "wide" }, table(`Scores of query ${reading.queries.names[query]}, key by key`, heads, rows, "parts"))];
}

/** q·k of one query with every key. @param {any} full @param {number} query @param {number} width @returns {Promise<number[]>} */
async function scores(full, query, width) {
  if (full.scores) return [...(await floats(full.scores)).subarray(query * width, (query + 1) * width)];
  const q = await floats(full.q), k = await floats(full.k), dim = full.dim;
  return Array.from({ length: width }, (_, i) => {
    let sum = 0;
    for (let d = 0; d < dim; d++) sum += q[query * dim + d] * k[i * dim + d];
    return sum;
  });
}

/** @param {number} w @param {number} digits */
function bar(w, digits) {
  const colour = shadeColour(Math.sqrt(w));
  return el("span", { class: "meter" }, el("i", { style: `width:${(w * 80).toFixed(1)}px` }), el("b", { style: w > 0.35 ? `background:${css(colour)};color:${inkOn(colour)}` : null }, weightText(w, digits)));
}

const NAMES = 120, SUMS = 150, ROW = 15;

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function product(reading, page) {
  const full = reading.full(state.layer, state.head);
  if (!full || !full.q) return [page.missing("The queries and keys of this head")];
  const [q, k, weights] = await Promise.all([floats(full.q), floats(full.k), reading.weights(state.layer, state.head)]);
  const dim = full.dim, keys = reading.keys.names, query = Math.min(state.query ?? page.liveliest(weights, keys.length), reading.queries.names.length - 1);
  const own = q.subarray(query * dim, (query + 1) * dim), width = keys.length;
  const row = [...weights.subarray(query * width, (query + 1) * width)];
  const key = state.key ?? row.reduce((best, w, i) => (w > (row[best] || 0) ? i : best), 0);
  const products = Float64Array.from({ length: width * dim }, (_, i) => own[i % dim] * k[i]);
  const sums = keys.map((/** @type {string} */ _, /** @type {number} */ i) => products.subarray(i * dim, (i + 1) * dim).reduce((a, b) => a + b, 0));
  const strip = all(page, reading, { own, products, sums, row, query, key, dim });
  const one = pair(reading, full, { own, other: k.subarray(key * dim, (key + 1) * dim), products: products.subarray(key * dim, (key + 1) * dim), sum: sums[key], query, key });
  page.figure(one, "product", strip);
  return [el("h2", {}, `q·k of query ${query} ${reading.queries.names[query]} with key ${key} ${keys[key]}`), await held(full, sums[key], query, key, width, row[key], reading.digits(state.layer, state.head)), el("div", { class: "wide" }, one),
    el("h2", {}, "Every key: the products, dimension by dimension"), el("p", { class: "hint" }, "Blue adds to the score, red takes from it. A click chooses the key."), el("div", { class: "wide" }, strip),
    behind("These products as a table", () => table(`q x k of ${reading.queries.names[query]} and ${keys[key]}`, ["dimension", "query", "key", "product"],
      [...own].map((each, d) => [String(d), numberText(each), numberText(k[key * dim + d]), numberText(products[key * dim + d])])))];
}

/** The sum, and what the result itself holds. @param {any} full @param {number} sum @param {number} query @param {number} key @param {number} width @param {number} weight @param {number} digits */
async function held(full, sum, query, key, width, weight, digits) {
  const score = full.scores ? (await floats(full.scores))[query * width + key] : null;
  const parts = [`Σ q·k = ${numberText(sum, 6)}`, score === null ? null : `score in the result ${numberText(score, 6)}`, `x scale ${parameterText(full.scale, 5)} = ${numberText(sum * full.scale, 6)}`,
    Number.isNaN(weight) ? "masked" : `weight ${weightText(weight, digits)}`];
  return el("p", { class: "sum", "data-sum": sum, "data-score": score }, parts.filter(Boolean).join("  ·  "));
}

/** A row of products for each key. @param {any} page @param {any} reading @param {any} found */
function all(page, reading, found) {
  const { products, sums, row, key, dim, own } = found, count = row.length, cell = Math.max(3, Math.min(26, Math.floor((page.room()[0] - NAMES - SUMS - 16) / dim)));
  const wide = NAMES + dim * cell + SUMS, drawn = figure(wide, (count + 2) * ROW + 20, `Products of the query with ${count} keys in ${dim} dimensions`), { svg } = drawn;
  const ramp = pixels((s) => signedColour(2 * s - 1)), most = largest(products), mostQ = largest(own);
  const paint = (/** @type {ArrayLike<number>} */ values, /** @type {number} */ top) => Uint32Array.from(values, (v) => ramp[Math.round(127.5 + (127.5 * v) / (top || 1))]);
  drawn.pixels(raster(dim, 1, paint(own, mostQ)), [NAMES, 4, dim * cell, ROW - 3]);
  drawn.pixels(raster(dim, count, paint(products, most)), [NAMES, ROW * 2, dim * cell, count * ROW]);
  svg.append(draw("text", { x: NAMES - 6, y: 14, "text-anchor": "end", class: "axis" }, "query vector"),
    draw("text", { x: NAMES + dim * cell + 8, y: ROW * 2 - 4, class: "axis" }, "q·k"), draw("text", { x: NAMES + dim * cell + 82, y: ROW * 2 - 4, class: "axis" }, "weight"));
  row.forEach((/** @type {number} */ w, /** @type {number} */ i) => {
    const y = ROW * (i + 2) + 11, kind = i === key ? "chosen" : "";
    svg.append(draw("text", { x: NAMES - 6, y, "text-anchor": "end", class: `small name ${kind}` }, cut(reading.keys.names[i], 15)),
      draw("text", { x: NAMES + dim * cell + 8, y, class: `small ${kind}` }, numberText(sums[i])), draw("text", { x: NAMES + dim * cell + 82, y, class: `small ${kind}` }, Number.isNaN(w) ? "masked" : weightText(w, reading.digits(state.layer, state.head))));
  });
  svg.append(draw("rect", { x: NAMES - 1, y: ROW * (key + 2), width: dim * cell + 2, height: ROW, class: "here" }));
  svg.addEventListener("click", (/** @type {any} */ event) => {
    const at = Math.floor((event.clientY - svg.getBoundingClientRect().top) / ROW) - 2;
    if (at >= 0 && at < count) set({ key: at, query: found.query });
  });
  return drawn;
}

/** @param {ArrayLike<number>} values */
const largest = (values) => Array.from(values).reduce((a, b) => Math.max(a, Math.abs(b)), 0);

/** The products of one pair, the largest first, and their sum as it grows. @param {any} reading @param {any} full @param {any} found */
function pair(reading, full, found) {
  const { own, other, products, sum } = found, order = [...products.keys()].sort((a, b) => Math.abs(products[b]) - Math.abs(products[a]));
  const left = 46, step = Math.max(5, Math.min(40, 680 / order.length)), wide = left + order.length * step + 20;
  /** @type {number[]} */
  const running = [];
  order.forEach((d) => running.push((running[running.length - 1] || 0) + products[d]));
  const ends = [Math.min(0, ...running, ...products), Math.max(0, ...running, ...products)], unit = 150 / (ends[1] - ends[0] || 1);
  const middle = 20 + ends[1] * unit, tall = 210, y = (/** @type {number} */ v) => middle - v * unit;
  const drawn = figure(wide, tall + 16, `Products of ${order.length} dimensions, the largest first, and their running sum`), { svg } = drawn;
  svg.append(draw("line", { x1: left, x2: wide - 16, y1: middle, y2: middle, class: "rule" }));
  for (const each of new Set([ends[1], 0, ends[0]])) if (!each || Math.abs(each) * unit > 12) svg.append(draw("text", { x: left - 6, y: y(each) + 4, "text-anchor": "end", class: "small" }, numberText(each, 3)));
  order.forEach((d, i) => svg.append(draw("rect", { x: left + i * step + 0.5, y: Math.min(y(products[d]), middle), width: step - 1, height: Math.max(Math.abs(y(products[d]) - middle), 0.5), fill: css(signedColour(Math.sign(products[d]) * 0.85)) },
    draw("title", {}, `dimension ${d}: ${numberText(own[d])} x ${numberText(other[d])} = ${numberText(products[d])}`))));
  svg.append(draw("polyline", { points: running.map((v, i) => `${left + (i + 0.5) * step},${y(v)}`).join(" "), class: "running" }));
  order.forEach((d, i) => {
    if (step >= 12 || i % Math.ceil(14 / step) === 0) svg.append(draw("text", { x: left + (i + 0.5) * step, y: tall - 14, "text-anchor": "middle", class: "tick" }, d));
  });
  svg.append(draw("text", { x: left, y: tall + 4, class: "small" }, "dimension, the largest product first; the line is the sum so far"),
    draw("text", { x: wide - 16, y: y(sum) + (sum < 0 ? 14 : -6), "text-anchor": "end", class: "small chosen" }, numberText(sum, 5)));
  return drawn;
}
