// @ts-check
/** What leads the page: its controls, its keys, and the file that hands out what is seen. */

import { byId, cut, el, root } from "./elements.js";
import { save, theme } from "./figure.js";
import { move } from "./grid.js";
import { link, pairNow, set, state } from "./state.js";
import { nameAt, rowOf } from "./weights.js";

const KEYS = "↑ ↓ query · ← → key · in the text ← → ↑ ↓ token, Enter what it looks at most · [ ] layer · , . head · 1-9 views · w words · Esc all queries";

/**
 * @param {string} label @param {string} name of the state @param {string[][]} choices value and text @param {(v: string) => any} [meant]
 * @param {(v: any) => any} [more] what else is then looked at
 */
function choice(label, name, choices, meant = (v) => v, more = () => ({})) {
  return el("label", { class: "field" }, `${label} `, el("select", { "data-choice": name, change: (/** @type {any} */ e) => set({ [name]: meant(e.target.value), ...more(meant(e.target.value)) }) },
    choices.map(([value, text]) => el("option", { value, selected: String(state[name]) === value }, text))));
}

/** The head and the query of the other side that belong to those of this one. @param {any} page @param {number} i */
function sided(page, i) {
  const [layer, head] = pairNow(page.given).slice(2 * i), opens = page.readings[i].it.opens;
  return { ...(page.given.both ? { layer, head } : opens), query: opens.query ?? state.query };
}

/** @param {any} page */
export function controls(page) {
  const { given, readings, reading } = page, tokens = reading?.it, weights = ["text", "both", "lines", "matrix"].includes(state.view);
  const special = tokens && (tokens.queries.special.length || tokens.keys.special.length);
  byId("controls").replaceChildren(...[
    readings.length > 1 && state.view !== "both" && choice("side", "side", given.readings.map((/** @type {any} */ r, /** @type {number} */ i) => [String(i), r.name]), Number, (i) => sided(page, i)),
    weights && !tokens.kept && (tokens.queries.words || tokens.keys.words) && choice("by", "words", [["false", "tokens"], ["true", tokens.queries.unit]], (v) => v === "true"),
    weights && special && choice("special", "special", [["show", "shown"], ["hide", "hidden"], ...(tokens.kept ? [] : [["renormalise", "left out, rows rescaled"]])]),
    weights && tokens.pair && choice("texts", "pairs", [["all", "all"], ["A-A", "A → A"], ["A-B", "A → B"], ["B-A", "B → A"], ["B-B", "B → B"]]),
    weights && choice("shades", "scale", [["sqrt", "square root, 0 to 1"], ["1", "in proportion, 0 to 1"], ["max", "in proportion, to the largest"], ["row", "in proportion, row by row"], ["log", "logarithmic"]]),
    state.query !== null && tokens && ["lines", "matrix"].includes(state.view) && el("button", { title: "all queries again", "aria-label": `query ${nameAt(tokens.queries, state.query)}: all queries again`, click: () => set({ query: null, key: null }) }, `${cut(nameAt(tokens.queries, state.query), 30)} ✕`),
    (page.drawn.length > 0 || page.media) && el("span", { class: "field" }, "save ", ...["svg", "png"].map((kind) => el("button", { "data-save": kind, click: () => saved(page, /** @type {any} */ (kind)) }, kind.toUpperCase()))),
    el("button", { title: "light or dark", click: () => page.paint(theme() === "dark" ? "light" : "dark") }, "◐"),
    el("button", { title: KEYS, click: () => keys() }, "?"),
  ].filter(Boolean));
}

/** @param {any} page @param {"svg"|"png"} kind */
function saved(page, kind) {
  const { given } = page, where = page.reading ? `L${state.layer}-H${state.head}` : "heads";
  const above = byId("reader").hidden ? [] : page.reader.saved();
  for (const { drawn, name } of [...above, ...page.drawn]) {
    const verdict = ["certified", "recomputed", "none"].includes(given.verdict) ? [] : [byId("verdict").textContent.trim()];
    save(drawn, `attnscope-${where}-${name}`, kind, [`${page.reading && !["heads", "row"].includes(name) ? `L${state.layer} H${state.head} · ` : ""}${given.heading}`, ...verdict], [...given.small, link()]);
  }
}

/** Which keys there are, told or no longer. */
function keys() {
  const there = byId("view").querySelector(".keycard");
  there ? there.remove() : byId("view").prepend(el("p", { class: "keycard", role: "status" }, KEYS));
}

/** @param {any} page @param {KeyboardEvent} event */
export function keyed(page, event) {
  const typing = event.target instanceof HTMLSelectElement || event.ctrlKey || event.metaKey || event.altKey;
  if (typing) return;
  const reading = page.reading, led = (/** @type {number} */ down, /** @type {number} */ right) => move && reading && move(reading.it, down, right);
  const go = /** @type {Record<string, () => any>} */ ({
    "[": () => led(-1, 0), "]": () => led(1, 0), ",": () => led(0, -1), ".": () => led(0, 1),
    Escape: () => set({ query: null, key: null }), w: () => reading && set(page.allowed({ ...state, words: !state.words })),
    ArrowUp: () => step(page, "query", -1), ArrowDown: () => step(page, "query", 1), ArrowLeft: () => step(page, "key", -1), ArrowRight: () => step(page, "key", 1),
    "?": keys,
  })[event.key];
  const view = /^[1-9]$/.test(event.key) && page.there()[Number(event.key) - 1];
  if (root.activeElement?.getAttribute("role") === "tab" && event.key.startsWith("Arrow")) {
    const views = page.there(), next = views[(views.indexOf(state.view) + (event.key === "ArrowRight" ? 1 : -1) + views.length) % views.length];
    set({ view: next });
    byId(`tab-${next}`)?.focus();
  } else if (view) set({ view });
  else if (!go) return;
  else go();
  event.preventDefault();
}

/** The next query or key of those that are shown. @param {any} page @param {"query"|"key"} what @param {number} by */
function step(page, what, by) {
  if (!page.reading || !["text", "both", "lines", "matrix", "product", "parts", "map"].includes(state.view)) return;
  const { rows, columns } = page.reading.axes(), all = what === "query" ? rows : columns, at = rowOf(all, state[what]);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (next) set({ [what]: next[0] });
}
