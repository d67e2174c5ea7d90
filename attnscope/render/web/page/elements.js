// @ts-check
/** Elements of the page, and numbers as text. Text only ever becomes a text node: no markup is parsed here. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} element @param {Record<string, any>} given attributes; functions listen, `false` and null are left out
 * @param {any[]} children elements and texts
 * @returns {T}
 */
function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return element;
}

/** @param {string} tag @param {Record<string, any>} [given] @param {...any} children @returns {any} */
export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/** @param {string} tag @param {Record<string, any>} [given] @param {...any} children @returns {any} */
export function draw(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** A weight from 0 to 1: `.1235`, `1.0000`; nothing where there is none. @param {number} weight @param {number} digits */
export function weightText(weight, digits) {
  return Number.isNaN(weight) ? "" : weight.toFixed(digits).replace(/^0(?=\.)/, "");
}

/** Any other number, in at least `digits` digits. @param {number|null} value @param {number} [digits] */
export function numberText(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "";
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e6)) return value.toFixed(Math.max(0, digits - Math.max(1, Math.ceil(Math.log10(size || 1)))));
  return value.toExponential(digits - 2);
}

/** @param {string} text @param {number} most characters @returns {string} */
export function cut(text, most) {
  const marks = [...text];
  return marks.length <= most ? text : marks.slice(0, most - 1).join("") + "…";
}

/** A table with a heading for every column. @param {string} caption @param {any[]} heads @param {any[][]} rows @param {string} [kind] */
export function table(caption, heads, rows, kind = "") {
  return el("table", { class: kind }, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((each) => el("th", { scope: "col" }, each)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => (i || cell === "" ? el("td", {}, cell) : el("th", { scope: "row" }, cell)))))));
}

/** The numbers behind a picture, written when somebody opens them. @param {string} title @param {() => any} make */
export function behind(title, make) {
  const details = el("details", { class: "behind" }, el("summary", {}, title));
  details.addEventListener("toggle", () => details.open && details.children.length < 2 && details.append(el("div", { class: "wide" }, make())));
  return details;
}
