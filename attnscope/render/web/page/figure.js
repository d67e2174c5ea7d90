// @ts-check
/** A figure: canvases with pixels below one drawing of lines and letters, and both together as an SVG or PNG file. */

import { draw, el, frame } from "./elements.js";
import { css, shadeColour } from "./shades.js";

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

/** The strip of colours that tells what a shade means, and of a scale that was asked for which it is. @param {any} svg @param {number} x @param {number} y @param {import("./shades.js").Scale} scale */
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
