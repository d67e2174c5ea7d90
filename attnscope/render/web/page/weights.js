// @ts-check
/**
 * What the file holds: a document as JSON and blocks of numbers, deflated and in base64; and of one side of the page what was read,
 * with the weights, certificate and vectors of each of its heads.
 */

import { byId } from "./elements.js";
import { state } from "./state.js";

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
function decodeWeights([high, low], rows, lossy) {
  const found = new Float32Array(high.length), width = high.length / rows, angle = Math.PI / 2 / 65279;
  for (let k = 0, i = 0; k < width; k++)
    for (let at = k; at < high.length; at += width, i++) found[at] = low && high[i] ? Math.sin((high[i] * 256 + low[i] - 256) * angle) ** 2 : COARSE[high[i]];
  if (!lossy) return { weights: found, lost: null };
  const lost = new Uint8Array(high.length);
  for (let k = 0, i = 0; k < width; k++)
    for (let at = k; at < high.length; at += width, i++) if (high[i] === LOST) (found[at] = NaN), (lost[at] = 1);
  return { weights: found, lost };
}

/** @typedef {{weights: Float32Array, rows: number[][], columns: number[][], queries: string[], keys: string[], digits: number, about: boolean, numbered: boolean, absent: (q: number, k: number) => string, lossy: boolean}} Seen
 * `absent` says why there is no number: masked, or not among the largest of a row, which are all that a `lossy` page has */

export class Reading {
  /** @param {any} given a reading of the document */
  constructor(given) {
    /** @type {any} */
    this.it = { ...given, keys: given.keys || given.queries };
    /** @type {Map<string, {weights: Float32Array, lost: Uint8Array|null}>} */
    this.decoded = new Map();
    /** @type {any} every head in small, by how many dots are drawn of it */
    this.dots = {};
    /** @type {number[]} */
    this.layers = given.layers;
    /** @type {number[]} */
    this.heads = given.heads;
    /** @type {any} */
    this.queries = given.queries;
    /** @type {any} */
    this.keys = this.it.keys;
  }

  /** Where a head stands among those of the page. @param {number} layer @param {number} head @returns {[number, number]} */
  place(layer, head) {
    return [this.it.layers.indexOf(layer), this.it.heads.indexOf(head)];
  }

  /** @param {number} layer @param {number} head */
  has(layer, head) {
    return !this.place(layer, head).includes(-1) && Boolean(this.it.blocks || this.full(layer, head));
  }

  /** What the page has of a head beside its weights: queries, keys, terms. @param {number} layer @param {number} head @returns {any} */
  full(layer, head) {
    return this.it.full[`L${layer}H${head}`] || null;
  }

  /** Every head in small, where the page has more than those in full. @returns {Promise<{bytes: Uint8Array, rows: number, columns: number}|null>} */
  async small() {
    const { small } = this.it, cells = (/** @type {string[]} */ names) => Math.ceil(names.length / small.step);
    return small && { bytes: await (this.pooled ||= bytesOf(small.block, 0)), rows: cells(this.queries.names), columns: cells(this.keys.names) };
  }

  /** Weights by tokens. @param {number} layer @param {number} head */
  async weights(layer, head) {
    return (await this.held(layer, head)).weights;
  }

  /** How many of a row are kept, and what share of a head's weight they hold; null where all are. @param {number} layer @param {number} head */
  kept(layer, head) {
    const [i, j] = this.place(layer, head);
    return this.it.kept && !this.full(layer, head)?.planes ? { most: this.it.kept.most, share: this.it.kept.share[i][j] } : null;
  }

  /** Weights by tokens, and which are not in the page. @param {number} layer @param {number} head */
  async held(layer, head) {
    const name = `L${layer}H${head}`, found = this.decoded.get(name), exact = this.full(layer, head);
    if (found) return found;
    const [i, j] = this.place(layer, head);
    const made = exact?.weights ? { weights: await floats(exact.weights), lost: null } : decodeWeights(exact?.planes ? await Promise.all(exact.planes.map((/** @type {string} */ plane) => bytesOf(plane, 0))) : await this.planes(i, j), this.it.queries.names.length, Boolean(this.kept(layer, head)));
    if (this.decoded.size > 40) this.decoded.clear();
    this.decoded.set(name, made);
    return made;
  }

  /** The codes of a head that has its place among all: of 16 bits the high bytes stand among those of all heads. @param {number} i @param {number} j */
  async planes(i, j) {
    const own = await bytesOf(this.it.blocks[i], j), size = this.queries.names.length * this.keys.names.length, at = (i * this.heads.length + j) * size;
    return this.it.depth === 2 ? [(await this.small()).bytes.subarray(at, at + size), own] : [own];
  }

  /** Digits of a weight that are told: all of them are those of the exact number. @param {number} layer @param {number} head */
  digits(layer, head) {
    const exact = this.full(layer, head);
    return exact?.weights || exact?.planes || this.it.depth === 2 ? 4 : 2;
  }

  /** The weights as they are looked at now. @param {number} layer @param {number} head @returns {Promise<Seen>} */
  async seen(layer, head) {
    const { weights: whole, lost } = await this.held(layer, head), { rows, columns } = this.axes();
    const usual = !state.words && state.special === "show" && state.pairs === "all";
    const width = this.it.keys.names.length, divided = state.special === "renormalise";
    const weights = usual ? whole : regrouped(whole, width, rows, columns, divided);
    // sums of codes, or what is divided by one, may be off by one in the last digit
    const told = this.digits(layer, head), digits = usual || this.full(layer, head)?.weights ? told : Math.min(told, 3), absent = (/** @type {number} */ q, /** @type {number} */ k) => (lost?.[rows[q][0] * width + columns[k][0]] ? "not kept" : "masked");
    return { weights, rows, columns, queries: groupNames(this.it.queries, rows), keys: groupNames(this.it.keys, columns), digits, about: told < 4, numbered: state.words && numbered(this.it.queries), absent, lossy: Boolean(lost) };
  }

  /** Which tokens stand behind rows and columns now. @returns {{rows: number[][], columns: number[][]}} */
  axes() {
    const [from, to] = state.pairs === "all" ? [null, null] : state.pairs.split("-").map((/** @type {string} */ each) => "AB".indexOf(each));
    return {
      rows: groups(this.it.queries, state.words, state.special, from),
      columns: groups(this.it.keys, state.words, state.special, to),
    };
  }

  /** Verdict and words of the certificate of a head. @param {number} layer @param {number} head @returns {Promise<{verdict: string, words: string, module: string}>} */
  async certificate(layer, head) {
    const [i, j] = this.place(layer, head), { verdicts, texts, rows } = await jsonBlock(this.it.certificates);
    return { verdict: verdicts[rows[i][j][0]], words: texts[rows[i][j][1]], module: "" };
  }

  /** The verdict of every head. @returns {Promise<string[][]>} */
  async verdicts() {
    const { verdicts, rows } = await jsonBlock(this.it.certificates);
    return rows.map((/** @type {number[][]} */ row) => row.map(([v]) => verdicts[v]));
  }
}

/**
 * The rows and columns that are looked at: where the pointer is, or what was chosen; -1 without. Where both sides
 * are the same tokens, the chosen one is a query and a key.
 * @param {Seen} seen @param {boolean} own @returns {{q: number, k: number}}
 */
export function chosen(seen, own) {
  const at = state.hover || state, q = rowOf(seen.rows, at.query ?? null), k = rowOf(seen.columns, at.key ?? null);
  return own ? { q: q < 0 ? k : q, k: q < 0 ? k : q } : { q, k };
}

/** What the queries that have a key give to each key, on average. @param {Seen} seen @returns {Float32Array} */
export function meanRow({ weights, keys, queries }) {
  const width = keys.length, found = new Float32Array(width);
  let asking = 0;
  for (let q = 0; q < queries.length; q++) {
    const row = weights.subarray(q * width, (q + 1) * width);
    if (row.every(Number.isNaN)) continue;
    asking++;
    row.forEach((w, k) => (found[k] += w || 0));
  }
  return found.map((sum) => sum / (asking || 1));
}

/**
 * The largest of a row or a column, how many there are, and what they come to.
 * @param {Float32Array} weights @param {number} from @param {number} step @param {number} length @param {number} most
 */
export function largest(weights, from, step, length, most) {
  /** @type {{i: number, w: number}[]} */
  const best = [];
  let sum = 0, count = 0;
  for (let i = 0, at = from; i < length; i++, at += step) {
    const w = weights[at];
    if (Number.isNaN(w)) continue;
    (sum += w), count++;
    if (best.length === most && w <= best[most - 1].w) continue;
    let place = best.length;
    while (place && best[place - 1].w < w) place--;
    best.splice(place, 0, { i, w });
    if (best.length > most) best.pop();
  }
  return { best, sum, count };
}

/** The row or column that holds the token at a position, or the first. @param {number[][]} rows @param {number|null} position */
export function rowOf(rows, position) {
  const found = position === null ? -1 : rows.findIndex((g) => g.includes(position));
  return found;
}

// Weights as they are looked at: between words, without special tokens, from one text of a pair to the other. The same as
// `attnscope.analysis.heads.view`: sum over the pieces of a key, mean over those of a query that has a key.

/**
 * Which tokens stand behind each row or column.
 * @param {any} tokens @param {boolean} words @param {string} special @param {number|null} part
 * @returns {number[][]}
 */
function groups(tokens, words, special, part) {
  const hidden = new Set(special === "show" ? [] : tokens.special);
  const whole = words && tokens.words ? tokens.words : tokens.names.map((/** @type {string} */ _, /** @type {number} */ i) => [i]);
  return whole.filter((/** @type {number[]} */ g) => !hidden.has(g[0]) && (part === null || tokens.parts[g[0]] === part));
}

/** What a row or column is called. @param {any} tokens @param {number[][]} rows @returns {string[]} */
function groupNames(tokens, rows) {
  return rows.map((g) => (state.words && tokens.joined[g[0]]) || tokens.names[g[0]]);
}

/** Whether words go by numbers of their own, as sentences and passages do. @param {any} tokens */
export const numbered = (tokens) => tokens.unit !== "words";

/** `5 door`, `4 5 unbelievable`; a sentence by its own number, that is in its name. @param {any} seen @param {number[]} group @param {string} name */
export const placed = (seen, group, name) => (seen.numbered ? name : `${group.length > 4 ? `${group[0]}-${group[group.length - 1]}` : group.join(" ")} ${name}`);

/** What is chosen at a position, as it is read now: a token, or the word or sentence around it. @param {any} tokens @param {number} position */
export function nameAt(tokens, position) {
  const group = (state.words && tokens.words?.find((/** @type {number[]} */ g) => g.includes(position))) || [position];
  return placed({ numbered: state.words && numbered(tokens) }, [position], groupNames(tokens, [group])[0]);
}

/**
 * @param {Float32Array} weights NaN where a key is masked @param {number} width keys
 * @param {number[][]} rows @param {number[][]} columns @param {boolean} divided
 * @returns {Float32Array}
 */
function regrouped(weights, width, rows, columns, divided) {
  const found = new Float32Array(rows.length * columns.length);
  rows.forEach((row, i) => {
    const answered = row.filter((q) => weights.subarray(q * width, (q + 1) * width).some((w) => !Number.isNaN(w)));
    let whole = 0;
    const sums = columns.map((column) => {
      let sum = 0, allowed = false;
      for (const q of answered) for (const k of column) {
        const w = weights[q * width + k];
        if (!Number.isNaN(w)) (sum += w), (allowed = true);
      }
      whole += sum / (answered.length || 1);
      return allowed ? sum / answered.length : NaN;
    });
    found.set(sums.map((sum) => (divided ? (whole > 0 ? sum / whole : NaN) : sum)), i * columns.length);
  });
  return found;
}
