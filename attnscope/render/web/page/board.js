// @ts-check
/** A picture or a sound as one side of what was read: its patches and frames are tokens like those of a text. */

import { byId, draw, el } from "./elements.js";
import { figure, pixels, raster, theme } from "./figure.js";
import { floats } from "./weights.js";

const TALL = 150; // pixels of a spectrogram

/**
 * `places` says which patch or frame a token is, and `put` lays the element of a token there. A sound is played from
 * `beside`: `follow` says what is done at every frame that sounds and what at the end, `go` seeks a frame.
 * @typedef {{root: HTMLElement, beside: HTMLElement|null, kind: string, told: string, places: Map<number, number>, put: (span: HTMLElement, i: number) => void,
 * fit: () => void, follow: (at: (i: number) => void, over: () => void) => void, go: (i: number) => void, play: () => void, saved: () => any}} Board
 */

/** The picture or the sound of the page. @param {any} given @returns {Board} */
export function boardOf(given) {
  const found = given.picture || given.sound, places = new Map(found.keys.map((/** @type {number} */ key, /** @type {number} */ i) => [key, i]));
  places.delete(-1); // a patch that this attention does not read
  return { places, told: found.described, ...(given.picture ? picture(found) : sound(found)) };
}

/** @param {HTMLElement} span @param {number[]} box left, top, width and height in shares of the whole */
function laid(span, box) {
  ["left", "top", "width", "height"].forEach((name, i) => span.style.setProperty(name, `${(100 * box[i]).toFixed(4)}%`));
  span.classList.add("cell");
}

/** The picture as it was read, and beside it the same under the patches. @param {any} found */
function picture(found) {
  const [height, width] = found.size, [rows, columns] = found.patches, [down, across] = [found.covered[0] / height / rows, found.covered[1] / width / columns];
  const original = /** @type {HTMLImageElement} */ (byId("original"));
  const image = () => el("img", { src: original.src, alt: "", draggable: "false" }); // described by the label of the list
  const face = el("div", { class: "face", role: "presentation" }, image());
  const root = el("div", { class: "board picture", role: "presentation", style: `--wide:${width};--high:${height}` }, el("div", { class: "face", role: "presentation" }, image()), face);
  const put = (/** @type {HTMLElement} */ span, /** @type {number} */ i) => (laid(span, [(i % columns) * across, Math.floor(i / columns) * down, across, down]), face.append(span));
  const nothing = () => {};
  return { root, beside: null, kind: "picture", put, fit: nothing, follow: nothing, go: nothing, play: nothing, saved: () => copied(face, [[original, true]], found.described) };
}

/** The spectrogram over its frames, a line where the sound is that is played. @param {any} found */
function sound(found) {
  const line = el("i", { class: "playing", hidden: true }), canvas = el("canvas", { "aria-hidden": "true" }), face = el("div", { class: "face", role: "presentation" }, canvas, line);
  const audio = found.wave ? el("audio", { controls: true, src: `data:audio/wav;base64,${byId(found.wave).textContent.trim()}`, "aria-label": found.described }) : null;
  const after = found.keys.length - found.own, end = after ? 0.86 : 1, share = (end * found.frame) / found.seconds;
  const times = el("p", { class: "times", "aria-hidden": "true" }, el("span", { style: `width:${100 * end}%` }, [0, 0.25, 0.5, 0.75, 1].map((part) => el("span", {}, `${(part * found.seconds).toFixed(2)} s`))), after > 0 && el("span", {}, "after"));
  const root = el("div", { class: "board sound", role: "presentation" }, face, times);
  const frame = () => Math.min(found.own - 1, Math.floor(audio.currentTime / found.frame));
  let drawnFor = "";
  async function fit() {
    if (!found.levels || drawnFor === theme()) return;
    drawnFor = theme();
    const levels = await floats(found.levels), [bands, moments] = found.shape, colours = new Uint32Array(bands * moments);
    const ramp = pixels((s) => Array(3).fill(Math.round(255 * (theme() === "dark" ? s : 1 - s)))); // grey: colours are weights
    for (let b = 0; b < bands; b++) for (let m = 0; m < moments; m++) colours[(bands - 1 - b) * moments + m] = ramp[Math.round(255 * Math.min(Math.max(1 + levels[b * moments + m] / 80, 0), 1))];
    const made = raster(moments, bands, colours);
    (canvas.width = moments), (canvas.height = bands), canvas.getContext("2d").drawImage(made, 0, 0);
    canvas.style.width = `${100 * end * Math.min((moments * found.step) / found.seconds, 1)}%`;
  }
  let heard = (/** @type {number} */ _i) => {}, over = () => {}, before = -1;
  const step = () => {
    if (audio.paused) return;
    line.style.left = `${(100 * end * audio.currentTime) / found.seconds}%`;
    if (frame() !== before) heard((before = frame()));
    requestAnimationFrame(step);
  };
  audio?.addEventListener("play", () => ((before = -1), (line.hidden = false), step()));
  audio?.addEventListener("pause", () => ((line.hidden = true), over()));
  return {
    root, beside: audio, kind: "sound", fit,
    follow: (/** @type {(i: number) => void} */ at, /** @type {() => void} */ then) => ((heard = at), (over = then)),
    play: () => audio && (audio.paused ? audio.play() : audio.pause()),
    put: (/** @type {HTMLElement} */ span, /** @type {number} */ i) => (laid(span, i < found.own ? [i * share, 0, Math.min(share, end - i * share), 1] : [end + 0.02 + ((i - found.own) / after) * 0.12, 0, 0.12 / after, 1]), line.before(span)),
    go: (/** @type {number} */ i) => audio && (audio.currentTime = i * found.frame),
    saved: () => copied(face, [[canvas, false]], found.described),
  };
}

/** What is seen of it, for a file: pixels, and over them every patch or frame in its shade. @param {HTMLElement} face @param {[any, boolean][]} below @param {string} label */
function copied(face, below, label) {
  const whole = face.getBoundingClientRect(), drawn = figure(whole.width, whole.height, label);
  for (const [image, all] of below) {
    const copy = el("canvas", { width: image.naturalWidth || image.width, height: image.naturalHeight || image.height });
    copy.getContext("2d").drawImage(image, 0, 0);
    drawn.pixels(copy, [0, 0, all ? whole.width : image.clientWidth, all ? whole.height : TALL], true);
  }
  for (const cell of face.querySelectorAll(".cell")) {
    const box = cell.getBoundingClientRect(), style = getComputedStyle(cell), top = parseFloat(style.paddingTop) || 0;
    drawn.svg.append(draw("rect", { x: box.left - whole.left, y: box.top - whole.top + top, width: box.width, height: box.height - top, fill: style.backgroundColor, stroke: cell.classList.contains("chosen") ? style.outlineColor : "none" }));
  }
  return drawn;
}
