// @ts-check
/** How dark a weight is: the rule of pictures and terminals (`attnscope.render.kit.scale`), and the colours of both themes. */
import { parameterText } from "./elements.js";

const RAMPS = {
  light: [[243, 246, 251], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107]],
  dark: [[26, 33, 43], [22, 66, 110], [34, 120, 181], [110, 190, 235], [226, 246, 255]],
};
const ENDS = {
  light: [[178, 24, 43], [247, 247, 247], [33, 102, 172]],
  dark: [[255, 120, 100], [30, 36, 44], [110, 180, 255]],
};
export const HEAD_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7a4fbf", "#6b6b6b"];

/** @returns {"light"|"dark"} */
export function theme() {
  const asked = document.documentElement.dataset.theme;
  if (asked === "light" || asked === "dark") return asked;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** @param {number[][]} stops @param {number} shade 0 to 1 @returns {number[]} */
function between(stops, shade) {
  const place = Math.min(Math.max(shade, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(place), stops.length - 2);
  return stops[i].map((each, c) => Math.round(each + (stops[i + 1][c] - each) * (place - i)));
}

/** @param {number} shade @returns {number[]} red, green, blue */
export const shadeColour = (shade) => between(RAMPS[theme()], shade);

/** @param {number} value -1 to 1 @returns {number[]} */
export const signedColour = (value) => between(ENDS[theme()], (value + 1) / 2);

/** @param {number[]} rgb */
export const css = (rgb) => `rgb(${rgb.join(",")})`;

/** Black or white, whichever is read better on it. @param {number[]} rgb */
export function inkOn(rgb) {
  const [r, g, b] = rgb.map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

/** 256 colours of a ramp as pixels. @param {(shade: number) => number[]} colour @returns {Uint32Array} */
export function pixels(colour) {
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = colour(i / 255);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

/**
 * @typedef {{kind: string, tops: Float32Array, least: number, legend: string, shade: (weight: number, row: number) => number}} Scale
 * @param {Float32Array} weights @param {number} width @param {string} asked auto, 1, max, row or log
 * @returns {Scale}
 */
export function scaleOf(weights, width, asked) {
  if (asked !== "auto") return scaled(weights, width, asked);
  for (const kind of ["1", "max"]) {
    const linear = scaled(weights, width, kind);
    if (shows(linear, weights, width)) return linear;
  }
  return scaled(weights, width, "log");
}

/** @param {Float32Array} weights @param {number} width @param {string} kind @returns {Scale} */
function scaled(weights, width, kind) {
  const rows = width ? weights.length / width : 0;
  const most = weights.reduce((a, b) => (b > a ? b : a), 0) || 1;
  const tops = new Float32Array(rows).fill(kind === "1" ? 1 : most);
  if (kind === "row")
    for (let i = 0; i < rows; i++) tops[i] = weights.subarray(i * width, (i + 1) * width).reduce((a, b) => (b > a ? b : a), 0) || 1;
  const least = kind === "log" ? faintest(weights, most) : 0;
  const say = (/** @type {number} */ w) => parameterText(w, 2);
  const legend = {
    "1": "white 0 to dark 1", max: `white 0 to dark ${say(most)}, the largest weight`,
    row: "white 0 to dark the largest weight of each row", log: `logarithmic: white ${say(least)} or less, dark ${say(most)}`,
  }[kind] || "";
  const shade = kind === "log"
    ? (/** @type {number} */ w) => Math.log(Math.max(w, least) / least) / Math.log(most / least)
    : (/** @type {number} */ w, /** @type {number} */ row) => Math.min(w / tops[row], 1);
  return { kind, tops, least, legend: theme() === "dark" ? legend.replace("white", "black").replace("dark", "bright") : legend, shade };
}

/** Where a logarithmic scale begins. @param {Float32Array} weights @param {number} most */
function faintest(weights, most) {
  let sum = 0, seen = 0;
  for (const w of weights) if (!Number.isNaN(w)) (sum += w), seen++;
  const quantile = hundredth(weights.filter((w) => w > 0)), even = sum / Math.max(seen, 1);
  const low = Math.min(Math.max(quantile, 0.1 * even, most / 1e5), most / 10), unit = 10 ** Math.floor(Math.log10(low));
  return Math.max(Math.floor(low / unit), 1) * unit;
}

/** The number that one in a hundred lies below. Positive numbers are in the order of their bits: sorted are few of them. @param {Float32Array} positive */
function hundredth(positive) {
  const bits = new Uint32Array(positive.buffer, positive.byteOffset, positive.length), counts = new Uint32Array(1 << 16);
  for (const each of bits) counts[each >>> 16]++;
  let left = Math.floor(0.01 * (positive.length - 1)), bin = 0;
  while (bin < counts.length - 1 && left >= counts[bin]) left -= counts[bin++];
  return positive.length ? positive.filter((_, i) => bits[i] >>> 16 === bin).sort()[left] : 0;
}

/** Whether enough of the weight can be seen on it. @param {Scale} scale @param {Float32Array} weights @param {number} width */
function shows(scale, weights, width) {
  const rows = weights.length / width, columns = new Float64Array(width);
  let all = 0, shown = 0, cells = 0, visible = 0;
  weights.forEach((w, i) => {
    if (Number.isNaN(w)) return;
    visible++, (all += w), (columns[i % width] += w);
    if (scale.shade(w, Math.floor(i / width)) >= 0.2) cells++, (shown += w);
  });
  if (!all) return true;
  if (shown < all / 3 || cells < visible / 64) return false;
  const favourite = columns.indexOf(columns.reduce((a, b) => Math.max(a, b)));
  let elsewhere = 0, beside = 0;
  for (let i = 0; i < rows; i++) {
    const row = weights.subarray(i * width, (i + 1) * width), whole = row.reduce((a, b) => a + (b || 0), 0);
    if (!((row[favourite] || 0) < whole / 2)) continue;
    elsewhere++;
    if (row.some((w, k) => k !== favourite && scale.shade(w, i) >= 0.2)) beside++;
  }
  return beside >= elsewhere / 2;
}
