// @ts-check
/**
 * The numbers of the result, as its CSV has them, sorted by a click on a heading; what is proved of them, where they come from, and
 * the command that makes them again.
 */

import { el, numberText, table } from "./elements.js";
import { set, state } from "./state.js";
import { jsonBlock } from "./weights.js";

const SHOWN = 300;

/** @param {any} _reading @param {any} page @returns {Promise<any[]>} */
export async function numbers(_reading, page) {
  const [heads, ...rows] = await jsonBlock(page.given.rows);
  const holder = el("div", { class: "wide tall" });
  let by = -1, down = false, all = false;
  const fill = () => {
    const sorted = by < 0 ? rows : [...rows].sort((a, b) => (down ? -1 : 1) * compared(a[by], b[by]));
    const shown = all ? sorted : sorted.slice(0, SHOWN);
    holder.replaceChildren(el("table", { class: "numbers" }, el("caption", {}, counted(rows.length, page.given.every_row)),
      el("thead", {}, el("tr", {}, heads.map((/** @type {string} */ name, /** @type {number} */ i) => el("th", { scope: "col", "aria-sort": i === by ? (down ? "descending" : "ascending") : "none" }, el("button", { click: () => ((down = i === by && !down), (by = i), fill()) }, name, i === by ? (down ? " ▾" : " ▴") : ""))))),
      el("tbody", {}, shown.map((/** @type {any[]} */ row) => el("tr", { class: opens(heads, row) ? "opens" : null, click: () => open(heads, row) }, row.map((/** @type {any} */ cell) => el("td", { title: String(cell), class: typeof cell === "number" ? null : "words" }, typeof cell === "number" && !Number.isInteger(cell) ? numberText(cell) : String(cell))))))),
      ...(rows.length > SHOWN && !all ? [el("button", { click: () => ((all = true), fill()) }, `show all ${rows.length} rows`)] : []));
    holder.prepend(...page.given.says.map((/** @type {string} */ each) => el("p", { class: "told" }, each)));
  };
  fill();
  page.figure(null, "numbers");
  return [holder];
}

/** How many rows these are of how many. @param {number} here @param {number} every */
function counted(here, every) {
  return here === every ? `${here} rows, as in the CSV file` : `the first ${here} of ${every} rows: the CSV file (-o FILE.csv) has all`;
}

/** @param {any} a @param {any} b */
function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a === "" || b === "") return a === "" ? (b === "" ? 0 : -1) : 1;
  return String(a).localeCompare(String(b));
}

/** The head that a row is about. @param {string[]} heads @param {any[]} row */
function opens(heads, row) {
  const [layer, head] = [heads.indexOf("layer"), heads.indexOf("head")];
  return layer >= 0 && head >= 0 && typeof row[layer] === "number" ? { layer: row[layer], head: row[head] } : null;
}

/** @param {string[]} heads @param {any[]} row */
function open(heads, row) {
  const found = opens(heads, row);
  if (found && (found.layer !== state.layer || found.head !== state.head)) set(found);
}

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function proof(reading, page) {
  const given = page.given, own = reading && reading.has(state.layer, state.head) ? await reading.certificate(state.layer, state.head) : null;
  page.figure(null, "proof");
  return [
    own && el("h2", {}, `Certificate of L${state.layer} H${state.head}`), own && el("p", { class: `certificate ${own.verdict}` }, own.words),
    el("h2", {}, "All that this page shows"), el("p", {}, given.proof),
    ...given.says.map((/** @type {string} */ each) => el("p", { class: "told" }, each)),
    given.command && [el("h2", {}, "The command that makes it again"), command(given.command.replace("{layer}", String(state.layer)).replace("{head}", String(state.head)))],
    ...given.provenance.map((/** @type {any} */ [title, rows]) => table(title, ["", ""], rows, "provenance")),
    el("p", { class: "hint" }, given.encoding),
  ];
}

/** A command line, and a button that copies it. @param {string} text */
export function command(text) {
  return el("div", { class: "command" }, el("code", {}, text), el("button", { click: (/** @type {any} */ e) => navigator.clipboard?.writeText(text).then(() => (e.target.textContent = "copied")) }, "copy"));
}
