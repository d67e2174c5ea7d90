// @ts-check
/** What is proved, where the numbers come from, and the command that makes them again. */

import { el, table } from "./elements.js";
import { state } from "./state.js";

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
