// @ts-check
/** What the scores of one query are made of: product, scale, cap, what is added, mask, score, weight. */

import { el, numberText, parameterText, table, weightText } from "./elements.js";
import { floats } from "./decode.js";
import { css, shadeColour, inkOn } from "./shades.js";
import { state } from "./state.js";

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
