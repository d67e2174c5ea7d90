// @ts-check
/** What the file holds: a document as JSON, and blocks of numbers, deflated and in base64. */

import { byId } from "./elements.js";

/** @param {string} id @param {number} [line] of several blocks under one name @returns {Promise<Uint8Array>} */
async function bytesOf(id, line = 0) {
  const packed = fromBase64(lines(id)[line]);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @type {Map<string, string[]>} */
const split = new Map();

/** @param {string} id */
function lines(id) {
  const block = byId(id);
  if (!block) throw new Error(`the page has no block ${id}`);
  const found = split.get(id) || (block.textContent || "").trim().split("\n");
  split.set(id, found);
  return found;
}

/** @param {string} text @returns {Uint8Array<ArrayBuffer>} */
function fromBase64(text) {
  const own = /** @type {any} */ (Uint8Array).fromBase64; // browsers since 2025
  if (own) return own.call(Uint8Array, text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** @type {Map<string, Promise<any>>} */
const kept = new Map();

/** @template T @param {string} id @param {() => Promise<T>} make @returns {Promise<T>} */
function once(id, make) {
  let found = kept.get(id);
  if (!found) kept.set(id, (found = make()));
  return found;
}

/** @param {string} id @returns {Promise<Float32Array>} */
export const floats = (id) => once(id, async () => new Float32Array((await bytesOf(id)).buffer));

/** @param {string} id @returns {Promise<any>} */
export const jsonBlock = (id) => once(id, async () => JSON.parse(new TextDecoder().decode(await bytesOf(id))));

/** Codes of a head, of several that stand under one name. @param {string} id @param {number} line */
export const codes = (id, line) => bytesOf(id, line);

/** The document itself. @returns {any} */
export function readDocument() {
  return JSON.parse(byId("document").textContent);
}

const LOST = 2; // a code of `codes.py`: a weight that is not one of the largest of its row

/** Weights by their codes of one byte. */
const COARSE = Float32Array.from({ length: 256 }, (_, code) => (code ? Math.sin(((code - 1) / 254) * (Math.PI / 2)) ** 2 : NaN));

/**
 * Weights from their codes: 0 is a key that is masked, NaN, as is `LOST` where not all weights are `kept`; another code is the angle, in equal steps, whose sine
 * squared is the weight. They stand column by column.
 * @param {Uint8Array[]} planes the high bytes, and the low ones where these are there @param {number} rows @param {boolean} lossy
 * @returns {{weights: Float32Array, lost: Uint8Array|null}} `lost` is 1 where a weight is not in the page
 */
export function decodeWeights([high, low], rows, lossy) {
  const found = new Float32Array(high.length), width = high.length / rows, angle = Math.PI / 2 / 65279;
  for (let k = 0, i = 0; k < width; k++)
    for (let at = k; at < high.length; at += width, i++) found[at] = low && high[i] ? Math.sin((high[i] * 256 + low[i] - 256) * angle) ** 2 : COARSE[high[i]];
  if (!lossy) return { weights: found, lost: null };
  const lost = new Uint8Array(high.length);
  for (let k = 0, i = 0; k < width; k++)
    for (let at = k; at < high.length; at += width, i++) if (high[i] === LOST) (found[at] = NaN), (lost[at] = 1);
  return { weights: found, lost };
}
