// @ts-check
/** The largest weights of the chosen token, both ways: what it looks at, and what looks at it. */

import { el, weightText } from "./elements.js";
import { set } from "./state.js";
import { LONG } from "./text.js";
import { chosen, largest } from "./weights.js";

const SHOWN = 8;

/** @param {HTMLElement} root */
export function lists(root) {
  const [at, by] = [list("looks at", "line"), list("is looked at by", "asks")];
  root.append(at.root, by.root);
  return {
    /** @param {any} current */
    point({ seen, own, reading, mean }) {
      const now = chosen(seen, own), width = seen.keys.length, long = Math.max(width, seen.queries.length) > LONG;
      root.className = long ? "long" : "";
      const average = now.q < 0 && now.k < 0 && mean ? largest(mean, 0, 1, width, SHOWN) : null;
      const row = now.q < 0 ? average : largest(seen.weights, now.q * width, 1, width, SHOWN), key = now.k >= 0 || !row ? now.k : row.best[0]?.i ?? -1;
      const column = key < 0 ? null : largest(seen.weights, key, width, seen.queries.length, SHOWN), digits = Math.min(seen.digits, 3);
      const context = (/** @type {any} */ tokens, /** @type {number[][]} */ groups) => (/** @type {number} */ i) => long && around(tokens, groups, i);
      const left = (/** @type {any} */ found, /** @type {number} */ length, /** @type {(i: number) => string} */ absent) => (seen.lossy && found ? ` kept, ${Array.from({ length }, (_, i) => absent(i)).filter((each) => each !== "masked").length} not` : "");
      at.fill(average ? "the mean query" : now.q < 0 ? "" : seen.queries[now.q], row, left(row, width, (i) => seen.absent(now.q, i)), seen.keys, seen.numbered ? null : seen.columns, digits, seen.about, context(reading.it.keys, seen.columns), (/** @type {number} */ i) => (own ? { query: seen.rows[i][0], key: null } : { query: null, key: seen.columns[i][0] }));
      by.fill(key < 0 ? "" : seen.keys[key], column, left(column, seen.queries.length, (i) => seen.absent(i, key)), seen.queries, seen.numbered ? null : seen.rows, digits, seen.about, context(reading.it.queries, seen.rows), (/** @type {number} */ i) => ({ query: seen.rows[i][0], key: null }));
    },
  };
}

/** @param {string} says @param {string} colour */
function list(says, colour) {
  const named = el("b"), told = el("span"), rest = el("p", { class: "rest" });
  const rows = Array.from({ length: SHOWN }, () => {
    const small = el("small"), before = el("bdi", { class: "before", dir: "ltr" }), name = el("b"), after = el("bdi", { class: "after" }), bar = el("i", { style: `background:var(--${colour})` }), number = el("span", { class: "n" });
    /** @type {any} */
    const made = { small, before, name, after, bar, number, go: null };
    made.row = el("li", { click: () => made.go && set(made.go) }, small, el("span", { class: "name" }, el("span", { class: "cut" }, before), name, after), el("span", { class: "b" }, bar), number);
    return made;
  });
  const root = el("section", {}, el("h2", {}, named, told), el("ol", {}, rows.map((each) => each.row)), rest);
  /** @param {string} whose @param {any} found @param {string} left what is not in the page @param {string[]} names @param {number[][]|null} groups null where names have numbers of their own @param {number} digits @param {boolean} about codes of 8 bits, whose sum is none @param {(i: number) => any} context @param {(i: number) => any} go */
  function fill(whose, found, left, names, groups, digits, about, context, go) {
    named.textContent = whose;
    told.textContent = found ? ` ${says}` : "choose a token";
    let sum = 0, shown = 0;
    for (const each of rows) each.row.classList.remove("out");
    const room = rows.filter((each) => getComputedStyle(each.row).display !== "none").length;
    rows.forEach((each, i) => {
      each.row.classList.toggle("out", i >= room); // on paper too, which may have more room
      const one = found?.best[i];
      each.row.style.visibility = one ? "" : "hidden";
      each.go = one ? go(one.i) : null;
      if (!one) return;
      if (i < room) (sum += one.w), shown++;
      const [before, after] = context(one.i) || ["", ""];
      write(each.small, groups ? String(groups[one.i][0]) : ""), write(each.before, before), write(each.name, names[one.i]), write(each.after, after);
      write(each.number, weightText(one.w, digits)), (each.bar.style.transform = `scaleX(${Math.min(one.w, 1)})`);
    });
    const others = found ? found.count - shown : 0;
    rest.textContent = others > 0 || left ? `${others} others${left}${about ? "" : `, together ${weightText(Math.max(found.sum - sum, 0), 2)}`}` : "";
  }
  return { root, fill };
}

/** Only what is another one, since what is written is laid out anew. @param {HTMLElement} element @param {string} text */
const write = (element, text) => void (element.textContent !== text && (element.textContent = text));

/** What stands around a token, since its name alone says nothing where its line is not in sight. @param {any} tokens @param {number[][]} groups @param {number} i */
function around(tokens, groups, i) {
  const said = (/** @type {number} */ t) => (tokens.gaps[t] ? " " : "") + (tokens.said[t] ?? tokens.names[t]), first = groups[i][0], last = groups[i][groups[i].length - 1];
  const part = (/** @type {number} */ from, /** @type {number} */ to) => tokens.names.slice(Math.max(from, 0), Math.max(to, 0)).map((/** @type {string} */ _, /** @type {number} */ j) => said(Math.max(from, 0) + j)).join("");
  return [part(first - 6, first).trimStart() + (tokens.gaps[first] ? "\u00a0" : ""), part(last + 1, last + 7)];
}
