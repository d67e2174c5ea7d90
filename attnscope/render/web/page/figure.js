// @ts-check
/**
 * How dark a weight is, by the rule of pictures and terminals (`attnscope.render.kit.palette`), in the colours of both themes; and a
 * figure: canvases with pixels below one drawing of lines and letters, and both together as an SVG or PNG file.
 */

import { draw, el, embedded, frame, parameterText, root } from "./elements.js";

/** Colours of the palette, `attnscope.render.kit.palette`, as the style of the page has them. @param {string} name @returns {string[]} */
const named = (name) => getComputedStyle(frame).getPropertyValue(`--${name}`).trim().split(" ");

/** @type {Record<string, number[][]>} */
const ramps = {};

/** Red, green and blue of every anchor of a ramp in the theme that is on. @param {string} name @returns {number[][]} */
function anchors(name) {
  const key = `${name}-${theme()}`;
  return (ramps[key] ||= named(key).map((each) => [1, 3, 5].map((i) => parseInt(each.slice(i, i + 2), 16))));
}

/** Of heads that are laid over one another, in their order. @param {number} i */
export const headColour = (i) => named("heads")[i % 8];

/** What says whether the page is light or dark. @type {HTMLElement} */
export const themed = root.documentElement || frame;

/** @returns {"light"|"dark"} */
export const theme = () => /** @type {any} */ (themed.dataset.theme) || preferred();

/** What the system is or, of a fragment, what says it around it: the ground that it stands on. @returns {"light"|"dark"} */
export function preferred() {
  if (!embedded) return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const told = root.host.closest('[data-theme="light"], [data-theme="dark"]');
  return told ? told.dataset.theme : inkOn(ground(root.host)) === "#fff" ? "dark" : "light";
}

/** The colour that is painted below an element, of nothing that of an empty page. @param {Element} element @returns {number[]} */
function ground(element) {
  for (let each = element.parentElement; each; each = each.parentElement) {
    const [r, g, b, opaque = 1] = (getComputedStyle(each).backgroundColor.match(/[\d.]+/g) || []).map(Number);
    if (opaque > 0.5) return [r, g, b];
  }
  frame.style.backgroundColor = "Canvas";
  const found = getComputedStyle(frame).backgroundColor.match(/[\d.]+/g).map(Number);
  frame.style.backgroundColor = "";
  return found;
}

/** @param {number[][]} stops @param {number} shade 0 to 1 @returns {number[]} */
function between(stops, shade) {
  const place = Math.min(Math.max(shade, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(place), stops.length - 2);
  return stops[i].map((each, c) => Math.round(each + (stops[i + 1][c] - each) * (place - i)));
}

/** @param {number} shade @returns {number[]} red, green, blue */
export const shadeColour = (shade) => between(anchors("weight"), shade);

/** @param {number} value -1 to 1 @returns {number[]} */
export const signedColour = (value) => between(anchors("signed"), (value + 1) / 2);

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
 * @typedef {{kind: string, tops: Float32Array, least: number, told: string, ticks: [number, string][], shade: (weight: number, row: number) => number}} Scale
 * `told` is what is said of a scale that was asked for, `ticks` are shares of the strip of colours with their texts
 * @param {Float32Array} weights @param {number} width @param {string} kind sqrt, 1, max, row or log
 * @returns {Scale}
 */
export function scaleOf(weights, width, kind) {
  const rows = width ? weights.length / width : 0, fixed = kind === "sqrt" || kind === "1";
  const most = fixed ? 1 : weights.reduce((a, b) => (b > a ? b : a), 0) || 1;
  const tops = new Float32Array(rows).fill(most);
  if (kind === "row")
    for (let i = 0; i < rows; i++) tops[i] = weights.subarray(i * width, (i + 1) * width).reduce((a, b) => (b > a ? b : a), 0) || 1;
  const least = kind === "log" ? faintest(weights, most) : 0;
  const say = (/** @type {number} */ w) => parameterText(w, 2);
  const told = {
    "1": "in proportion, 0 to 1", max: `in proportion, 0 to ${say(most)}, the largest weight`,
    row: "in proportion, 0 to the largest weight of each row", log: `logarithmic, ${say(least)} or less to ${say(most)}, the largest weight`,
  }[kind] || "";
  const shade = {
    sqrt: (/** @type {number} */ w) => Math.sqrt(Math.min(w, 1)),
    log: (/** @type {number} */ w) => Math.log(Math.max(w, least) / least) / Math.log(most / least),
  }[kind] || ((/** @type {number} */ w, /** @type {number} */ row) => Math.min(w / tops[row], 1));
  const marked = { sqrt: TICKS, row: [0, 1], log: [least, most] }[kind] || [0, most];
  return { kind, tops, least, told, shade, ticks: marked.map((w) => [kind === "row" ? w : shade(w, 0), kind === "row" && w ? "the row's largest" : say(w)]) };
}

const TICKS = [0, 0.01, 0.1, 0.5, 1];

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

const STRIP = 160; // pixels
const COPIED = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "stroke-dasharray"];

/**
 * @param {number} width @param {number} height @param {string} label what it shows, for who cannot see it
 * @returns {any} the element; `.svg` takes drawings, `.pixels(...)` places a canvas
 */
export function figure(width, height, label) {
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const holder = el("div", { class: "figure", style: `width:${width}px;height:${height}px` }, svg);
  holder.svg = svg;
  holder.size = [width, height];
  holder.rasters = [];
  holder.pixels = (/** @type {HTMLCanvasElement} */ canvas, /** @type {number[]} */ [x, y, w, h], smooth = false) => {
    canvas.setAttribute("style", `left:${x}px;top:${y}px;width:${w}px;height:${h}px${smooth ? "" : ";image-rendering:pixelated"}`);
    canvas.setAttribute("aria-hidden", "true");
    holder.rasters.push({ canvas, x, y, w, h, smooth });
    holder.insertBefore(canvas, svg);
  };
  return holder;
}

/** A canvas of colours, a pixel a number. @param {number} width @param {number} height @param {Uint32Array} colours */
export function raster(width, height, colours) {
  const canvas = el("canvas", { width, height });
  const image = new ImageData(new Uint8ClampedArray(/** @type {ArrayBuffer} */ (colours.buffer), colours.byteOffset, colours.length * 4), width, height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** The strip of colours that tells what a shade means, and of a scale that was asked for which it is. @param {any} svg @param {number} x @param {number} y @param {Scale} scale */
export function scaleStrip(svg, x, y, { ticks, told }) {
  for (let i = 0; i < STRIP / 4; i++) svg.append(draw("rect", { x: x + i * 4, y, width: 4.5, height: 8, fill: css(shadeColour(i / (STRIP / 4 - 1))) }));
  for (const [at, text] of ticks) svg.append(draw("text", { x: x + at * STRIP, y: y + 18, "text-anchor": at < 0.05 ? "start" : "middle", class: "tick" }, text));
  if (told) svg.append(draw("text", { x: x + STRIP + 14, y: y + 8, class: "small" }, told));
}

/** The figure as one SVG document that needs nothing else. @param {any} holder @param {string[]} above @param {string[]} below */
export function asSvg(holder, above, below) {
  const [width, height] = holder.size, ground = getComputedStyle(frame);
  const wide = Math.max(width, 480), top = 22 * above.length + 8, tall = top + height + 17 * below.length + 12;
  const letters = { "font-family": "system-ui, sans-serif", fill: ground.color };
  const copy = inlined(holder.svg);
  copy.setAttribute("y", String(top));
  const images = holder.rasters.map((/** @type {any} */ r) => draw("image", {
    x: r.x, y: r.y + top, width: r.w, height: r.h, href: r.canvas.toDataURL(), preserveAspectRatio: "none",
    style: r.smooth ? null : "image-rendering:pixelated",
  }));
  const root = draw("svg", { xmlns: "http://www.w3.org/2000/svg", width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}` },
    draw("rect", { width: wide, height: tall, fill: ground.backgroundColor }), images, copy,
    above.map((line, i) => draw("text", { x: 8, y: 22 * (i + 1), "font-size": i ? 12 : 15, "font-weight": i ? 400 : 600, ...letters }, line)),
    below.map((line, i) => draw("text", { x: 8, y: top + height + 17 * (i + 1), "font-size": 11, opacity: 0.8, ...letters }, line)));
  return { text: new XMLSerializer().serializeToString(root), width: wide, height: tall };
}

/** A copy of a drawing that holds its own styles. @param {any} svg */
function inlined(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((each, i) => {
    const style = getComputedStyle(each);
    for (const name of COPIED) to[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-label"]) to[i].removeAttribute(name);
  });
  return copy;
}

/** Hand a figure to who looks at it, as a file. @param {any} holder @param {string} name @param {"svg"|"png"} kind @param {string[]} above @param {string[]} below */
export async function save(holder, name, kind, above, below) {
  const made = asSvg(holder, above, below);
  const source = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(made.text);
  if (kind === "svg") return download(source, `${name}.svg`);
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = el("canvas", { width: made.width * 2, height: made.height * 2 }), pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  download(canvas.toDataURL("image/png"), `${name}.png`);
}

/** @param {string} address @param {string} name */
function download(address, name) {
  el("a", { href: address, download: name }).click();
}
