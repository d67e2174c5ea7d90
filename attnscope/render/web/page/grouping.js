// @ts-check
/**
 * Weights as they are looked at: between words, without special tokens, from one text of a pair to the other.
 * The same as `attnscope.analysis.heads.view`: sum over the pieces of a key, mean over those of a query that has a key.
 */

/**
 * Which tokens stand behind each row or column.
 * @param {any} tokens @param {boolean} words @param {string} special @param {number|null} part
 * @returns {number[][]}
 */
export function groups(tokens, words, special, part) {
  const hidden = new Set(special === "show" ? [] : tokens.special);
  const whole = words && tokens.words ? tokens.words : tokens.names.map((/** @type {string} */ _, /** @type {number} */ i) => [i]);
  return whole.filter((/** @type {number[]} */ g) => !hidden.has(g[0]) && (part === null || tokens.parts[g[0]] === part));
}

/** What a row or column is called. @param {any} tokens @param {number[][]} rows @returns {string[]} */
export function groupNames(tokens, rows) {
  return rows.map((g) => (g.length > 1 ? tokens.joined[g[0]] : tokens.names[g[0]]));
}

/**
 * @param {Float32Array} weights NaN where a key is masked @param {number} width keys
 * @param {number[][]} rows @param {number[][]} columns @param {boolean} divided
 * @returns {Float32Array}
 */
export function regrouped(weights, width, rows, columns, divided) {
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
