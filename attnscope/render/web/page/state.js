// @ts-check
/** What is looked at, as it stands in the address: `#L3H11,q=5,view=matrix` opens the same again. */

import { embedded, root } from "./elements.js";

export const VIEWS = ["text", "both", "matrix", "lines", "heads", "product", "parts", "map", "numbers", "proof"];

/** @type {any} `hover` is a query, a key or both that the pointer is at; it stands in no address */
export const state = {
  side: 0, layer: 0, head: 0, query: null, key: null, other: null, view: "matrix", words: false, special: "show", pairs: "all",
  scale: "sqrt", more: [], hover: null,
};
/** @type {any} */
let usual = {};
/** @type {() => void} */
let redraw = () => {};
/** @type {(told: string) => any} */
let read = () => {};
/** @type {(() => void)[]} */
const listeners = [];

/** @param {any} opening what opens without an address @param {(found: any) => any} allowed what of it is there @param {() => void} changed */
export function begin(opening, allowed, changed) {
  usual = { ...state, ...opening };
  redraw = changed;
  read = (told) => Object.assign(state, usual, allowed({ ...usual, ...parsed(told) }));
  read(embedded ? root.host.dataset.at || "" : location.hash); // a host has one address, and may have several fragments
  if (!embedded) addEventListener("hashchange", () => (read(location.hash), redraw()));
}

/** What an address asks for. @param {string} told */
export const follow = (told) => (read(told), kept(), redraw());

/** The place is kept where it is read again: in the address or, of a fragment, at its own element. */
function kept() {
  try {
    if (embedded) root.host.dataset.at = link();
    else history.replaceState(null, "", link());
  } catch {
    // a frame without an address of its own keeps its state to itself
  }
}

/** @param {any} changes */
export function set(changes) {
  Object.assign(state, changes, { hover: null });
  kept();
  redraw();
}

/** What the pointer is at, or nothing: only what listens is drawn anew. @param {any} at */
export function point(at) {
  state.hover = at;
  for (const each of listeners) each();
}

/** @param {() => void} listener */
export const listen = (listener) => void listeners.push(listener);

/** The heads of two sides that belong together: layer and head of side a, and of side b. @param {any} given @returns {number[]} */
export function pairNow(given) {
  const at = 2 * state.side, here = given.both.pairs.find((/** @type {number[]} */ pair) => pair[at] === state.layer && pair[at + 1] === state.head);
  return here || [state.layer, state.head, state.layer, state.head];
}

const SHORT = { query: "q", key: "k" };

/** The address of what is looked at. @returns {string} */
export function link() {
  const parts = [`L${state.layer}H${state.head}`];
  for (const name of ["query", "key", "other", "view", "special", "pairs", "scale", "side"])
    // a key without a query of its own belongs to the one that opens
    if (state[name] !== usual[name] && !(name === "key" && state.key === null && state.query !== usual.query)) parts.push(`${/** @type {any} */ (SHORT)[name] || name}=${state[name] ?? "none"}`);
  if (state.words !== usual.words) parts.push(`words=${state.words ? 1 : 0}`);
  if (state.more.length) parts.push("heads=" + state.more.map((/** @type {number[]} */ [l, h]) => `L${l}H${h}`).join("+"));
  return "#" + parts.join(",");
}

/** @param {string} hash @returns {any} */
function parsed(hash) {
  /** @type {any} */
  const found = {};
  for (const part of hash.replace(/^#/, "").split(/[,&]/)) {
    const [name, ...rest] = part.split("="), value = rest.join("="), long = { q: "query", k: "key" }[name] || name;
    const head = /^L(\d+)H(\d+)$/.exec(name);
    if (head) (found.layer = Number(head[1])), (found.head = Number(head[2]));
    else if (["query", "key", "other"].includes(long) && value === "none") found[long] = null;
    else if (["query", "key", "other", "side"].includes(long) && /^\d+$/.test(value)) found[long] = Number(value);
    else if (name === "words") found.words = value === "1";
    else if (["view", "special", "pairs", "scale"].includes(name)) found[name] = /^[\w-]+$/.test(value) ? value : undefined;
    else if (name === "heads") found.more = [...value.matchAll(/L(\d+)H(\d+)/g)].map((m) => [Number(m[1]), Number(m[2])]);
  }
  if ("query" in found && !("key" in found)) found.key = null; // the key of what opens belongs to its query
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}
