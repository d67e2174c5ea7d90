// @ts-check
/** All heads: thumbnails of their weights. The small one leads, the large one is a view. */

import { draw, el } from "./elements.js";
import { figure, pixels, scaleOf, scaleStrip, shadeColour } from "./figure.js";
import { command } from "./proof.js";
import { set, state } from "./state.js";

const LEFT = 30, TOP = 18;
const MARKS = { failed: "✗", uncertified: "○", partial: "~", inconclusive: "?", certified: "", recomputed: "", stored: "" };

/** Where each head stands. @param {any} shape layers and heads @param {number} room @param {number} largest */
function places(shape, room, largest) {
  const across = shape.heads.length, cell = Math.max(8, Math.min(largest, Math.floor((room - LEFT - 4) / across)));
  return { cell, width: LEFT + across * cell + 4, height: TOP + shape.layers.length * cell + 26 };
}

/** @param {any} page @param {number} room @param {number} largest @param {boolean} small @returns {any} */
export function grid(page, room, largest, small) {
  const shape = page.reading, { cell, width, height } = places(shape, room, largest), said = "weights, shaded by the square root";
  const drawn = figure(Math.max(width, 250), height, `${shape.layers.length} layers by ${shape.heads.length} heads, weights`), { svg } = drawn;
  ticks(svg, shape, cell);
  page.waiting = thumbnails(drawn, page, cell);
  marks(svg, shape, page, cell);
  scaleStrip(svg, LEFT, height - 20, scaleOf(new Float32Array(0), 0, "sqrt"));
  drawn.tabIndex = 0;
  drawn.dataset.cell = cell;
  drawn.setAttribute("role", "group");
  drawn.setAttribute("aria-label", `Heads by ${said}: arrow keys choose`);
  drawn.addEventListener("keydown", (/** @type {any} */ event) => arrows(event, shape));
  pointer(drawn, shape, cell, page);
  return drawn;
}

/** @param {any} svg @param {any} shape @param {number} cell */
function ticks(svg, shape, cell) {
  const every = Math.ceil(14 / cell);
  shape.layers.forEach((/** @type {number} */ l, /** @type {number} */ i) => i % every === 0 && svg.append(draw("text", { x: LEFT - 4, y: TOP + (i + 0.5) * cell + 4, "text-anchor": "end", class: "small" }, `L${l}`)));
  shape.heads.forEach((/** @type {number} */ h, /** @type {number} */ j) => j % Math.ceil(20 / cell) === 0 && svg.append(draw("text", { x: LEFT + (j + 0.5) * cell, y: TOP - 5, "text-anchor": "middle", class: "small" }, cell > 24 ? `H${h}` : h)));
}

/** Every head in small, on one canvas: of several pairs in one dot the largest weight. @param {any} drawn @param {any} page @param {number} cell */
async function thumbnails(drawn, page, cell) {
  const reading = page.reading, ramp = pixels(shadeColour), across = reading.heads.length, down = reading.layers.length;
  const fine = Math.max(1, Math.min(3, Math.floor(2400 / (cell * Math.max(across, down))))), side = (cell - 2) * fine;
  const board = el("canvas", { width: across * cell * fine, height: down * cell * fine }), pen = board.getContext("2d");
  drawn.pixels(board, [LEFT, TOP, across * cell, down * cell], true);
  const most = Math.max((cell - 2) * Math.min(devicePixelRatio, 2), 8), known = (reading.dots[most] ||= {}), small = await reading.small();
  for (let i = 0; i < down; i++) {
    const image = new ImageData(board.width, cell * fine);
    for (let j = 0; j < across; j++) {
      const made = async () => {
        const seen = small ? { ...small, from: (i * across + j) * small.rows * small.columns } : await whole(reading, i, j);
        return dots(seen, Math.max(1, Math.ceil(Math.max(seen.rows, seen.columns) / most)));
      };
      paint(image, j * cell * fine, side, await (known[`${i} ${j}`] ||= made()), ramp);
    }
    pen.putImageData(image, 0, i * cell * fine);
  }
}

/** The codes of one head of those that are all there in full. @param {any} reading @param {number} i @param {number} j */
async function whole(reading, i, j) {
  if (!reading.has(reading.layers[i], reading.heads[j])) return { bytes: new Uint8Array(1), from: 0, rows: 1, columns: 1 };
  const weights = await reading.weights(reading.layers[i], reading.heads[j]), rows = reading.queries.names.length, columns = reading.keys.names.length;
  const code = (/** @type {number} */ w) => (Number.isNaN(w) ? 0 : 1 + Math.round((508 / Math.PI) * Math.asin(Math.sqrt(Math.min(w, 1)))));
  return { bytes: Uint8Array.from(weights, (_, at) => code(weights[(at % rows) * columns + Math.floor(at / rows)])), from: 0, rows, columns };
}

/** The shade of a code, which is an angle: its sine. @type {number[]} */
const SHADES = Array.from({ length: 256 }, (_, code) => Math.round(255 * Math.sin(((Math.max(code, 1) - 1) / 254) * (Math.PI / 2))));

/**
 * A dot for every `step` by `step` pairs, which stand by columns: the largest code, -1 where all of them are masked.
 * @param {{bytes: Uint8Array, from: number, rows: number, columns: number}} seen
 * @param {number} step @returns {{found: Int16Array, tall: number, wide: number}}
 */
function dots({ bytes, from, rows, columns }, step) {
  const tall = Math.ceil(rows / step), wide = Math.ceil(columns / step), found = new Int16Array(tall * wide).fill(-1);
  const at = Int32Array.from({ length: rows }, (_, q) => Math.floor(q / step) * wide);
  for (let k = 0, i = from; k < columns; k++) {
    const column = Math.floor(k / step);
    for (let q = 0; q < rows; q++, i++) {
      const dot = bytes[i], place = at[q] + column;
      if (dot > found[place] && dot) found[place] = dot;
    }
  }
  return { found, tall, wide };
}

/** Dots as a picture of at most `side` by `side` pixels. @param {ImageData} image @param {number} left @param {number} side @param {{found: Int16Array, tall: number, wide: number}} dots @param {Uint32Array} ramp */
function paint(image, left, side, { found, tall, wide }, ramp) {
  const colours = new Uint32Array(image.data.buffer), longest = Math.max(tall, wide);
  const down = Math.round((side * tall) / longest), across = Math.round((side * wide) / longest);
  const at = Int32Array.from({ length: across }, (_, x) => Math.floor((x * wide) / across));
  for (let y = 0; y < down; y++) {
    const row = Math.floor((y * tall) / down) * wide, to = y * image.width + left;
    for (let x = 0; x < across; x++) {
      const dot = found[row + at[x]];
      if (dot >= 0) colours[to + x] = ramp[SHADES[dot]];
    }
  }
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

/** @param {any} drawn @param {any} shape @param {number} cell @param {any} page */
function pointer(drawn, shape, cell, page) {
  const place = (/** @type {any} */ event) => {
    const box = drawn.getBoundingClientRect(), j = Math.floor((event.clientX - box.left - LEFT) / cell), i = Math.floor((event.clientY - box.top - TOP) / cell);
    return i >= 0 && j >= 0 && i < shape.layers.length && j < shape.heads.length ? [i, j] : null;
  };
  drawn.addEventListener("pointermove", (/** @type {any} */ event) => {
    const at = place(event), [i, j] = at || [0, 0];
    page.pointed(at ? `L${shape.layers[i]} H${shape.heads[j]}` : "");
  });
  drawn.addEventListener("pointerleave", () => page.pointed(""));
  drawn.addEventListener("click", (/** @type {any} */ event) => {
    const at = place(event);
    if (!at) return;
    const layer = shape.layers[at[0]], head = shape.heads[at[1]];
    if (event.ctrlKey || event.metaKey || event.shiftKey) beside(layer, head);
    else set({ layer, head, view: state.view === "heads" && page.reading?.has(layer, head) ? "matrix" : state.view });
  });
}

/** One more head in the sentence, or one less; eight colours are told apart. @param {number} layer @param {number} head */
function beside(layer, head) {
  const rest = state.more.filter((/** @type {number[]} */ [l, h]) => l !== layer || h !== head);
  if (rest.length < state.more.length) set({ more: rest });
  else if ((layer !== state.layer || head !== state.head) && rest.length < 7) set({ more: [...rest, [layer, head]], view: "lines" });
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

/** The large grid. @param {any} _reading @param {any} page */
export async function heads(_reading, page) {
  const drawn = grid(page, page.room()[0], 120, false);
  page.figure(drawn, "heads");
  await page.waiting;
  const hint = "A click opens a head; with Shift or Ctrl it is laid beside the one that is open.";
  const opener = page.given.opener && [el("p", { class: "hint" }, `This opens L${state.layer} H${state.head}:`), command(page.given.opener.replace("{layer}", state.layer).replace("{head}", state.head))];
  return [el("p", { class: "hint" }, hint), el("div", { class: "wide" }, drawn), opener];
}
