// @ts-check
/** What the model answers, run untouched: the likeliest words of each blank, and what it wrote. */

import { draw, el } from "./elements.js";
import { figure } from "./figure.js";

/** @param {any} _reading @param {any} page @returns {Promise<any[]>} */
export async function prediction(_reading, page) {
  const found = page.given.prediction;
  const parts = found.blanks.flatMap((/** @type {any} */ blank) => {
    const drawn = figure(560, blank.guesses.length * 24 + 8, blank.place), { svg } = drawn;
    blank.guesses.forEach((/** @type {[string, number, string]} */ [text, probability, told], /** @type {number} */ i) => svg.append(
      draw("text", { x: 150, y: 20 + i * 24, "text-anchor": "end", class: "word" }, text), draw("rect", { x: 160, y: 8 + i * 24, width: Math.max(probability * 320, 1), height: 16, class: "bar" }),
      draw("text", { x: 166 + probability * 320, y: 20 + i * 24, class: "small number" }, told)));
    page.figure(drawn, "prediction");
    return [el("h2", {}, blank.place), el("div", { class: "wide" }, drawn)];
  });
  return [...parts, ...found.says.map((/** @type {string} */ each) => el("p", { class: "hint" }, each))];
}
