// @ts-check
/** What the file holds: a document as JSON, and blocks of numbers, deflated and in base64. */

import { byId } from "./elements.js";

/** @param {string} id @returns {Promise<Uint8Array>} */
async function bytesOf(id) {
  const block = document.getElementById(id);
  if (!block) throw new Error(`the page has no block ${id}`);
  const packed = fromBase64((block.textContent || "").trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
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

/** Codes of all heads of a layer, one plane of bytes after the other. @param {string} id */
export const codes = (id) => once(id, () => bytesOf(id));

/** The document itself. @returns {any} */
export function readDocument() {
  return JSON.parse(byId("document").textContent);
}

/**
 * Weights from their codes: 0 is a key that is masked, NaN; another code is the square root in equal steps.
 * @param {Uint8Array} planes @param {number} from where the head begins @param {number} count
 * @param {number} heads of the layer @param {boolean} both whether the low bytes are there
 * @returns {Float32Array}
 */
export function decodeWeights(planes, from, count, heads, both) {
  const found = new Float32Array(count), low = heads * count;
  for (let i = 0; i < count; i++) {
    const code = both ? planes[from + i] * 256 + planes[low + from + i] : planes[from + i];
    const root = (code - 1) / (both ? 65534 : 254);
    found[i] = code ? root * root : NaN;
  }
  return found;
}
