// @ts-check
/** Elements of the page, and numbers as text. Text only ever becomes a text node: no markup is parsed here. */

const SVG = "http://www.w3.org/2000/svg";

/** Where the page stands: the document, or of a fragment the shadow of its element. @type {any} */
export const root = document.currentScript?.parentElement?.shadowRoot || document;
/** Whether it is a part of a page of somebody else, whose address, keys and colours are not ours. */
export const embedded = root !== document;
/** What holds everything that is shown. @type {any} */
export const frame = root.querySelector(".page");

/** @param {CSSStyleSheet} sheet */
export const adopt = (sheet) => (root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet]);

/** How much of a window, or of a column of somebody else, there is. */
export const across = () => (embedded ? frame.clientWidth : innerWidth);

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
export const byId = (id) => root.getElementById(id);

// How a number is written is said in render/kit/numbers.py; one table of cases holds for both.

/** A weight that stands alone: `.1235`, `1.000`, `<.0001`; nothing where there is none. @param {number} weight @param {number} decimals */
export function weightText(weight, decimals) {
  const text = weightCell(weight, decimals);
  return isNothing(text) ? (weight > 0 ? `<.${"1".padStart(decimals, "0")}` : "0") : text;
}

/** A weight of a matrix: `.12`, `1.0`, `.00`. @param {number} weight @param {number} decimals */
export function weightCell(weight, decimals) {
  const text = Number.isNaN(weight) ? "" : fixed(weight, decimals);
  return text.startsWith("1.") ? text.slice(0, decimals + 1) : text;
}

/** So many digits that tell, and all those before the point: `.02143`, `12.30`, `3.1e-8`, `0`. @param {number|null} value @param {number} [digits] */
export function numberText(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "";
  const size = Math.abs(value), [mantissa, exponent] = size.toExponential(digits - 1).split("e");
  if (value === 0) return "0";
  if (size >= 1e-3 && size < 1e6) return fixed(value, Math.max(0, digits - 1 - Number(exponent)));
  return size === Infinity ? `${value < 0 ? "−" : ""}∞` : `${value < 0 ? "−" : ""}${mantissa}e${Number(exponent)}`;
}

/** A change, `+.012`, `−.304`. @param {number} value @param {number} decimals */
export function signedText(value, decimals) {
  if (Number.isNaN(value)) return "";
  const text = fixed(value, decimals);
  return `${value > 0 ? "+" : ""}${isNothing(text) ? numberText(value, 1) : text}`;
}

/** What was set, or the end of a scale: `.1768`, `.125`, `50`. @param {number} value @param {number} [digits] */
export const parameterText = (value, digits = 4) => numberText(value, digits).replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "");

/** @param {number} value @param {number} decimals */
function fixed(value, decimals) {
  const [whole, behind] = Math.abs(value).toFixed(decimals).split("."), before = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  const digits = behind === undefined ? before : `${before === "0" ? "" : before}.${behind}`;
  return `${value < 0 && !isNothing(digits) ? "−" : ""}${digits}`;
}

/** @param {string} text */
const isNothing = (text) => /^[0.]+$/.test(text);

/** @param {string} text @param {number} most characters @returns {string} */
export function cut(text, most) {
  const marks = [...text];
  return marks.length <= most ? text : marks.slice(0, most - 1).join("") + (marks.at(-1) === "\u200e" ? "…\u200e" : "…"); // still closed where it runs from the right
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
