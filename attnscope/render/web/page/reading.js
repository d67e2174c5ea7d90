// @ts-check
/** One side of the page: what was read, and the weights, certificate and vectors of each of its heads. */

import { codes, decodeWeights, floats, jsonBlock } from "./decode.js";
import { groupNames, groups, regrouped } from "./grouping.js";
import { state } from "./state.js";

/** @typedef {{weights: Float32Array, rows: number[][], columns: number[][], queries: string[], keys: string[], digits: number, about: boolean}} Seen */

export class Reading {
  /** @param {any} given a reading of the document */
  constructor(given) {
    /** @type {any} */
    this.it = { ...given, keys: given.keys || given.queries };
    /** @type {Map<string, Float32Array>} */
    this.decoded = new Map();
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

  /** The planes of codes of a layer; null where its heads are there as numbers. @param {number} i @returns {Promise<Uint8Array|null>} */
  planes(i) {
    return this.it.blocks ? codes(this.it.blocks[i]) : Promise.resolve(null);
  }

  /** Every head in small, where the page has that beside the weights. @returns {Promise<{bytes: Uint8Array, rows: number, columns: number}|null>} */
  async small() {
    const { small } = this.it, cells = (/** @type {string[]} */ names) => Math.ceil(names.length / small.step);
    return small && { bytes: await codes(small.block), rows: cells(this.queries.names), columns: cells(this.keys.names) };
  }

  /** Weights by tokens. @param {number} layer @param {number} head @returns {Promise<Float32Array>} */
  async weights(layer, head) {
    const name = `L${layer}H${head}`, found = this.decoded.get(name), exact = this.full(layer, head);
    if (found) return found;
    const [i, j] = this.place(layer, head), count = this.it.queries.names.length * this.it.keys.names.length;
    const planes = exact ? null : await this.planes(i);
    const made = planes
      ? decodeWeights(planes, j * count, count, this.it.heads.length, this.it.depth === 2)
      : await floats(exact.weights);
    if (this.decoded.size > 40) this.decoded.clear();
    this.decoded.set(name, made);
    return made;
  }

  /** Digits of a weight that are told: all of them are those of the exact number. @param {number} layer @param {number} head */
  digits(layer, head) {
    return this.full(layer, head) || this.it.depth === 2 ? 4 : 2;
  }

  /** The weights as they are looked at now. @param {number} layer @param {number} head @returns {Promise<Seen>} */
  async seen(layer, head) {
    const whole = await this.weights(layer, head), { rows, columns } = this.axes();
    const usual = !state.words && state.special === "show" && state.pairs === "all";
    const width = this.it.keys.names.length, divided = state.special === "renormalise";
    const weights = usual ? whole : regrouped(whole, width, rows, columns, divided);
    const digits = this.digits(layer, head);
    return { weights, rows, columns, queries: groupNames(this.it.queries, rows), keys: groupNames(this.it.keys, columns), digits, about: digits < 4 };
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

/** The row or column that holds the token at a position, or the first. @param {number[][]} rows @param {number|null} position */
export function rowOf(rows, position) {
  const found = position === null ? -1 : rows.findIndex((g) => g.includes(position));
  return found;
}
