// @ts-check
/** A picture with the weights of a query on its patches, and a sound with those on its frames. */

import { byId, draw, el, weightText } from "./elements.js";
import { figure, raster, scaleStrip } from "./figure.js";
import { floats } from "./decode.js";
import { pixels, scaleOf, shadeColour, theme } from "./shades.js";
import { set, state } from "./state.js";

/** The weights of the chosen query, or the mean over all that have a key. @param {any} reading @returns {Promise<number[]>} */
async function rowNow(reading) {
  const weights = await reading.weights(state.layer, state.head), width = reading.keys.names.length, query = state.query;
  const rows = query === null ? reading.queries.names.map((/** @type {string} */ _, /** @type {number} */ i) => i) : [query];
  const seen = rows.map((/** @type {number} */ q) => [...weights.subarray(q * width, (q + 1) * width)]).filter((/** @type {number[]} */ row) => row.some((w) => !Number.isNaN(w)));
  return Array.from({ length: width }, (_, k) => seen.reduce((/** @type {number} */ sum, /** @type {number[]} */ row) => sum + (row[k] || 0), 0) / (seen.length || 1));
}

/** @param {any} reading @returns {any[]} */
function askers(reading) {
  const names = reading.queries.names;
  const choose = el("select", { "aria-label": "Query", change: (/** @type {any} */ e) => set({ query: e.target.value === "" ? null : Number(e.target.value) }) },
    el("option", { value: "" }, "mean over all queries"), names.map((/** @type {string} */ name, /** @type {number} */ i) => el("option", { value: i, selected: i === state.query }, `${i} ${name}`)));
  return [el("label", { class: "field" }, "query ", choose)];
}

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function picture(reading, page) {
  const found = page.given.picture, original = /** @type {HTMLImageElement} */ (byId("original")), row = await rowNow(reading), [height, width] = found.size, [rows, columns] = found.patches;
  const scale = Math.min((page.room()[0] - 20) / (2 * width + 24), 520 / height), w = width * scale, h = height * scale;
  const drawn = figure(2 * w + 24, h + 36, `The picture, and the weights on its ${rows} by ${columns} patches`), { svg } = drawn;
  const values = found.keys.map((/** @type {number} */ k) => (k < 0 ? NaN : row[k])), shown = scaleOf(Float32Array.from(values), values.length, state.scale), ramp = pixels(shadeColour);
  const cover = [(found.covered[1] / width) * w, (found.covered[0] / height) * h];
  for (const x of [0, w + 24]) svg.before(el("img", { src: original.src, alt: found.described, class: "raster", style: `left:${x}px;top:0;width:${w}px;height:${h}px` }));
  const faint = Uint32Array.from(values, (/** @type {number} */ v) => (Number.isNaN(v) ? 0 : ((ramp[Math.round(255 * shown.shade(v, 0))] & 0xffffff) | (190 << 24)) >>> 0));
  drawn.pixels(raster(columns, rows, faint), [w + 24, 0, ...cover]);
  const told = el("output", { class: "readout" }, "Point at a patch for its weight; a click makes it the query, where patches ask.");
  const at = (/** @type {any} */ event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) % (w + 24), c = Math.floor((x / cover[0]) * columns), r = Math.floor(((event.clientY - box.top) / cover[1]) * rows);
    return c >= 0 && r >= 0 && c < columns && r < rows ? r * columns + c : -1;
  };
  const mark = svg.appendChild(draw("rect", { class: "here", width: cover[0] / columns, height: cover[1] / rows, visibility: "hidden" }));
  svg.addEventListener("pointermove", (/** @type {any} */ event) => {
    const i = at(event);
    if (i < 0) return;
    mark.setAttribute("x", String(w + 24 + (i % columns) * (cover[0] / columns))), mark.setAttribute("y", String(Math.floor(i / columns) * (cover[1] / rows))), mark.setAttribute("visibility", "visible");
    told.textContent = `patch ${Math.floor(i / columns)}, ${i % columns}: ${Number.isNaN(values[i]) ? "not looked at by this attention" : weightText(values[i], 4)}`;
  });
  svg.addEventListener("click", (/** @type {any} */ event) => at(event) >= 0 && reading.it.self && set({ query: found.keys[at(event)] }));
  scaleStrip(svg, w + 24, h + 14, shown);
  page.figure(drawn, "picture");
  return [...askers(reading), told, el("div", { class: "wide" }, drawn), elsewhere(row, found.keys, reading)];
}

/** What does not lie on the picture or the sound. @param {number[]} row @param {number[]} keys @param {any} reading */
function elsewhere(row, keys, reading) {
  const there = new Set(keys), rest = row.map((w, k) => [k, w]).filter(([k]) => !there.has(k)).sort((a, b) => b[1] - a[1]);
  const sum = rest.reduce((all, [, w]) => all + w, 0);
  return rest.length > 0 && el("p", { class: "hint" }, `Elsewhere ${weightText(sum, reading.digits(state.layer, state.head))}: ` + rest.slice(0, 4).map(([k, w]) => `${reading.keys.names[k]} ${weightText(w, reading.digits(state.layer, state.head))}`).join(", "));
}

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function sound(reading, page) {
  const found = page.given.sound, row = await rowNow(reading), wide = page.room()[0] - 60, tall = 200;
  const drawn = figure(wide, tall + 100, `The sound, and the weights on its ${found.keys.length} frames`), { svg } = drawn;
  if (found.levels) {
    const levels = await floats(found.levels), [bands, frames] = found.shape, ramp = pixels((s) => Array(3).fill(Math.round(255 * (theme() === "dark" ? s : 1 - s)))); // grey: colours are weights
    const colours = new Uint32Array(bands * frames);
    for (let b = 0; b < bands; b++) for (let f = 0; f < frames; f++) colours[(bands - 1 - b) * frames + f] = ramp[Math.round(255 * Math.min(Math.max(1 + levels[b * frames + f] / 80, 0), 1))];
    drawn.pixels(raster(frames, bands, colours), [0, 0, wide * Math.min((frames * found.step) / found.seconds, 1), tall], true);
  }
  const values = found.keys.map((/** @type {number} */ k) => row[k]), most = Math.max(...values, 1e-12), step = (found.frame / found.seconds) * wide;
  values.forEach((/** @type {number} */ v, /** @type {number} */ i) => svg.append(draw("rect", { x: i * step, y: tall + 8 + (1 - v / most) * 50, width: Math.max(step - 0.3, 0.4), height: (v / most) * 50, class: "bar" }, draw("title", {}, `${(i * found.frame).toFixed(2)} s: ${weightText(v, 4)}`))));
  svg.append(draw("text", { x: 0, y: tall + 74, class: "small" }, "0 s"), draw("text", { x: wide, y: tall + 74, "text-anchor": "end", class: "small" }, `${found.seconds.toFixed(2)} s`),
    draw("text", { x: wide / 2, y: tall + 74, "text-anchor": "middle", class: "small" }, `weights of the frames, 0 to ${weightText(most, 4)}`));
  page.figure(drawn, "sound");
  return [...askers(reading), el("div", { class: "wide" }, drawn), elsewhere(row, found.keys, reading)];
}
