// @ts-check
/** All heads: thumbnails of their weights, or one number of each. The small one leads, the large one is a view. */

import { amongText, behind, draw, el, numberText, table } from "./elements.js";
import { figure, raster, scaleStrip } from "./figure.js";
import { command } from "./proof.js";
import { css, inkOn, pixels, shadeColour, signedColour } from "./shades.js";
import { set, state } from "./state.js";

const LEFT = 30, TOP = 18;
const MARKS = { failed: "✗", uncertified: "○", partial: "~", inconclusive: "?", certified: "" };

/** Where each head stands. @param {any} shape layers and heads @param {number} room @param {number} largest */
function places(shape, room, largest) {
  const across = shape.heads.length, cell = Math.max(8, Math.min(largest, Math.floor((room - LEFT - 4) / across)));
  return { cell, width: LEFT + across * cell + 4, height: TOP + shape.layers.length * cell + 26 };
}

/** @param {any} page @param {number} room @param {number} largest @param {boolean} small @returns {any} */
export function grid(page, room, largest, small) {
  const numbers = page.grids[state.grid - 1], reading = page.reading;
  const shape = numbers || reading, { cell, width, height } = places(shape, room, largest);
  const name = numbers ? numbers.name : "weights";
  const drawn = figure(Math.max(width, 250), height, `${shape.layers.length} layers by ${shape.heads.length} heads, ${name}`), { svg } = drawn;
  ticks(svg, shape, cell);
  if (numbers) shaded(svg, numbers, cell);
  else page.waiting = thumbnails(drawn, reading, cell);
  marks(svg, shape, page, cell);
  const said = numbers ? `${numbers.name}${numbers.unit ? `, ${numbers.unit}` : ""}` : "square root of the weight, 0 to 1";
  if (!numbers) scaleStrip(svg, LEFT, height - 18, small ? "√weight, 0 to 1" : said);
  else svg.append(draw("text", { x: LEFT, y: height - 10, class: "small" }, legend(numbers)));
  drawn.tabIndex = 0;
  drawn.setAttribute("role", "group");
  drawn.setAttribute("aria-label", `Heads by ${said}: arrow keys choose`);
  drawn.addEventListener("keydown", (/** @type {any} */ event) => arrows(event, shape));
  pointer(drawn, shape, numbers, cell, page);
  return drawn;
}

/** @param {any} svg @param {any} shape @param {number} cell */
function ticks(svg, shape, cell) {
  const every = Math.ceil(14 / cell);
  shape.layers.forEach((/** @type {number} */ l, /** @type {number} */ i) => i % every === 0 && svg.append(draw("text", { x: LEFT - 4, y: TOP + (i + 0.5) * cell + 4, "text-anchor": "end", class: "small" }, `L${l}`)));
  shape.heads.forEach((/** @type {number} */ h, /** @type {number} */ j) => j % Math.ceil(20 / cell) === 0 && svg.append(draw("text", { x: LEFT + (j + 0.5) * cell, y: TOP - 5, "text-anchor": "middle", class: "small" }, cell > 24 ? `H${h}` : h)));
}

/** @param {any} numbers @returns {[number, number]} */
function limits(numbers) {
  const values = numbers.values.flat().filter((/** @type {number|null} */ v) => v !== null);
  if (numbers.limits) return numbers.limits;
  const low = Math.min(...values), high = Math.max(...values), most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return numbers.signed ? [-most, most] : [Math.min(low, 0), high || 1];
}

/** @param {any} numbers */
function legend(numbers) {
  const [low, high] = limits(numbers);
  return `${numbers.name}: ${numberText(low, 3)} to ${numberText(high, 3)}${numbers.unit ? ` ${numbers.unit}` : ""}${numbers.beside ? ` · ${numbers.beside}` : ""}`;
}

/** @param {any} numbers @param {number} value */
function colourOf(numbers, value) {
  const [low, high] = limits(numbers), share = (value - low) / (high - low || 1);
  return numbers.signed ? signedColour(2 * share - 1) : shadeColour(numbers.low ? 1 - share : share);
}

/** @param {any} svg @param {any} numbers @param {number} cell */
function shaded(svg, numbers, cell) {
  const extent = Math.max(...limits(numbers).map(Math.abs));
  numbers.values.forEach((/** @type {any[]} */ row, /** @type {number} */ i) => row.forEach((value, j) => {
    if (value === null) return;
    const colour = colourOf(numbers, value), x = LEFT + j * cell, y = TOP + i * cell;
    svg.append(draw("rect", { x, y, width: cell - 1, height: cell - 1, fill: css(colour) }));
    if (cell >= 38) svg.append(draw("text", { x: x + cell / 2, y: y + cell / 2 + 4, "text-anchor": "middle", fill: inkOn(colour), class: "value" }, numbers.classes ? numbers.classes[value] : amongText(value, extent)));
  }));
}

/** Every head in small: of several pairs in one dot the largest weight. @param {any} drawn @param {any} reading @param {number} cell */
async function thumbnails(drawn, reading, cell) {
  const ramp = pixels(shadeColour), queries = reading.queries.names.length, keys = reading.keys.names.length;
  const most = Math.max((cell - 2) * Math.min(devicePixelRatio, 2), 8), step = Math.max(1, Math.ceil(Math.max(queries, keys) / most));
  const rows = Math.ceil(queries / step), columns = Math.ceil(keys / step);
  reading.layers.forEach((/** @type {number} */ _, /** @type {number} */ i) => reading.planes(i)); // inflated beside one another
  for (let i = 0; i < reading.layers.length; i++) {
    const planes = await reading.planes(i);
    for (let j = 0; j < reading.heads.length; j++) {
      const dots = planes ? fromCodes(planes, j * queries * keys, reading.it.depth === 2 ? (reading.heads.length + j) * queries * keys : -1, queries, keys, step) : fromWeights(await reading.weights(reading.layers[i], reading.heads[j]), queries, keys, step);
      const colours = dots.map((dot) => (dot < 0 ? 0 : ramp[dot]));
      const box = [LEFT + j * cell, TOP + i * cell, cell - 2, cell - 2];
      if (rows !== columns) (box[2] *= Math.min(1, columns / rows)), (box[3] *= Math.min(1, rows / columns));
      drawn.pixels(raster(columns, rows, new Uint32Array(colours)), box);
    }
    if (i % 3 === 2) await new Promise((done) => setTimeout(done));
  }
}

/**
 * The largest high byte of each few pairs, -1 where all of them are masked.
 * @param {Uint8Array} planes @param {number} high where the high bytes of the head begin @param {number} low where its low bytes do, -1 without
 * @param {number} queries @param {number} keys @param {number} step @returns {number[]}
 */
function fromCodes(planes, high, low, queries, keys, step) {
  const rows = Math.ceil(queries / step), columns = Math.ceil(keys / step), found = new Array(rows * columns).fill(-1);
  for (let q = 0, i = 0; q < queries; q++) {
    const row = Math.floor(q / step) * columns;
    for (let k = 0; k < keys; k++, i++) {
      const at = row + Math.floor(k / step), dot = planes[high + i];
      if (dot > found[at] && (dot || (low >= 0 && planes[low + i]))) found[at] = dot;
    }
  }
  return found;
}

/** @param {Float32Array} weights @param {number} queries @param {number} keys @param {number} step @returns {number[]} */
function fromWeights(weights, queries, keys, step) {
  const bytes = Uint8Array.from(weights, (w) => (Number.isNaN(w) ? 0 : 1 + Math.round(254 * Math.sqrt(w))));
  return fromCodes(bytes, 0, -1, queries, keys, step);
}

/** The chosen head, and heads that are not certified. @param {any} svg @param {any} shape @param {any} page @param {number} cell */
function marks(svg, shape, page, cell) {
  const frame = (/** @type {number} */ l, /** @type {number} */ h, /** @type {string} */ kind) => {
    const i = shape.layers.indexOf(l), j = shape.heads.indexOf(h);
    if (i >= 0 && j >= 0) svg.append(draw("rect", { x: LEFT + j * cell - 1.5, y: TOP + i * cell - 1.5, width: cell + 1, height: cell + 1, class: kind }));
  };
  for (const [l, h] of state.more) frame(l, h, "beside");
  frame(state.layer, state.head, "here");
  const words = svg.appendChild(draw("g"));
  page.verdicts?.then((/** @type {string[][]} */ rows) => rows?.forEach((row, i) => row.forEach((verdict, j) => {
    const mark = /** @type {any} */ (MARKS)[verdict];
    if (mark && shape.layers.length === rows.length) words.append(draw("text", { x: LEFT + (j + 1) * cell - 4, y: TOP + (i + 1) * cell - 4, "text-anchor": "end", class: `mark ${verdict}` }, draw("title", {}, verdict), mark));
  })));
}

/** @param {any} drawn @param {any} shape @param {any} numbers @param {number} cell @param {any} page */
function pointer(drawn, shape, numbers, cell, page) {
  const place = (/** @type {any} */ event) => {
    const box = drawn.getBoundingClientRect(), j = Math.floor((event.clientX - box.left - LEFT) / cell), i = Math.floor((event.clientY - box.top - TOP) / cell);
    return i >= 0 && j >= 0 && i < shape.layers.length && j < shape.heads.length ? [i, j] : null;
  };
  drawn.addEventListener("pointermove", (/** @type {any} */ event) => {
    const at = place(event), [i, j] = at || [0, 0];
    page.pointed(at ? `L${shape.layers[i]} H${shape.heads[j]}${numbers ? `: ${valueText(numbers, i, j)}` : ""}` : "");
  });
  drawn.addEventListener("pointerleave", () => page.pointed(""));
  drawn.addEventListener("click", (/** @type {any} */ event) => {
    const at = place(event);
    if (!at) return;
    const layer = shape.layers[at[0]], head = shape.heads[at[1]];
    if (event.ctrlKey || event.metaKey || event.shiftKey) beside(layer, head);
    else set({ layer, head, view: state.view === "heads" && page.reading?.has(layer, head) ? "sentence" : state.view });
  });
}

/** @param {any} numbers @param {number} i @param {number} j */
function valueText(numbers, i, j) {
  const value = numbers.values[i][j], control = numbers.control ? `, ${numbers.controlName} ${numberText(numbers.control[i][j])}` : "";
  if (value === null) return "no number";
  return `${numbers.name} ${numbers.classes ? numbers.classes[value] : numberText(value)}${numbers.unit ? ` ${numbers.unit}` : ""}${control}`;
}

/** One more head in the sentence, or one less; eight colours are told apart. @param {number} layer @param {number} head */
function beside(layer, head) {
  const rest = state.more.filter((/** @type {number[]} */ [l, h]) => l !== layer || h !== head);
  if (rest.length < state.more.length) set({ more: rest });
  else if ((layer !== state.layer || head !== state.head) && rest.length < 7) set({ more: [...rest, [layer, head]], view: "sentence" });
}

/** @param {any} event @param {any} shape */
export function arrows(event, shape) {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[/** @type {"ArrowUp"} */ (event.key)];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  move(shape, step[0], step[1]);
}

/** The next head in a direction. @param {any} shape @param {number} down @param {number} right */
export function move(shape, down, right) {
  const i = shape.layers.indexOf(state.layer) + down, j = shape.heads.indexOf(state.head) + right;
  if (shape.layers[i] !== undefined && shape.heads[j] !== undefined) set({ layer: shape.layers[i], head: shape.heads[j] });
}

/** The large grid, and its numbers behind it. @param {any} reading @param {any} page */
export async function heads(reading, page) {
  const drawn = grid(page, page.room()[0], reading && !state.grid ? 120 : 56, false), numbers = page.grids[state.grid - 1];
  page.figure(drawn, "heads");
  await page.waiting;
  const claims = page.given.claims && page.given.says.map((/** @type {string} */ each) => el("p", { class: "told" }, each));
  const hint = reading ? "A click opens a head; with Shift or Ctrl it is laid beside the one that is open." : "Point at a head for its number beside its control; a click chooses it.";
  const opener = page.given.opener && [el("p", { class: "hint" }, `This opens L${state.layer} H${state.head}:`), command(page.given.opener.replace("{layer}", state.layer).replace("{head}", state.head))];
  return [page.chooser(), el("p", { class: "hint" }, hint), el("div", { class: "wide" }, drawn), !reading && el("p", { class: "pointed", id: "pointed", "aria-live": "polite" }), claims, opener,
    numbers && behind("These numbers as a table", () => table(numbers.name, ["layer", ...numbers.heads.map((/** @type {number} */ h) => `H${h}`)],
      numbers.layers.map((/** @type {number} */ l, /** @type {number} */ i) => [`L${l}`, ...numbers.values[i].map((/** @type {any} */ v) => (numbers.classes && v !== null ? numbers.classes[v] : numberText(v)))]))),
    numbers && numbers.says && el("p", { class: "hint" }, numbers.says)];
}
