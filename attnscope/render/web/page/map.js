// @ts-check
/** Queries and keys of the head in a plane, with the figures that say how far it can be trusted. */

import { behind, cut, draw, el, numberText, table } from "./elements.js";
import { figure } from "./figure.js";
import { set, state } from "./state.js";
import { rowOf } from "./weights.js";

/** @param {any} reading @param {any} page @returns {Promise<any[]>} */
export async function map(reading, page) {
  const found = page.given.map, wide = Math.min(page.room()[0] - 20, 820);
  const points = [...found.queries, ...found.keys], xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const ends = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const unit = Math.min((wide - 150) / (ends[1] - ends[0] || 1), 460 / (ends[3] - ends[2] || 1)), tall = (ends[3] - ends[2]) * unit + 80;
  const at = (/** @type {number[]} */ p) => [wide / 2 + (p[0] - (ends[0] + ends[1]) / 2) * unit, tall / 2 - (p[1] - (ends[2] + ends[3]) / 2) * unit];
  const drawn = figure(wide, tall, "Map of queries and keys"), { svg } = drawn;
  svg.setAttribute("role", "group");
  const query = rowOf(found.rows, state.query), row = query < 0 ? null : found.weights[query];
  if (row) row.forEach((/** @type {number|null} */ w, /** @type {number} */ k) => {
    const [a, b] = [at(found.queries[query]), at(found.keys[k])];
    if (w !== null && w > 0.005) svg.append(draw("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: "link", "stroke-width": 0.5 + 5 * w, "stroke-opacity": 0.15 + 0.7 * w }));
  });
  const names = free(found, at, wide);
  found.keys.forEach((/** @type {number[]} */ p, /** @type {number} */ k) => {
    const [x, y] = at(p), w = row ? row[k] || 0 : 0;
    svg.append(draw("rect", { x: x - 5, y: y - 5, width: 10, height: 10, class: "point key", transform: `rotate(45 ${x} ${y})` }, draw("title", {}, `key ${found.keyNames[k]}${row ? ` ${numberText(w, 3)}` : ""}`)));
  });
  found.queries.forEach((/** @type {number[]} */ p, /** @type {number} */ q) => {
    const [x, y] = at(p), choose = () => set({ query: q === query ? null : found.rows[q][0] });
    svg.append(draw("circle", { cx: x, cy: y, r: q === query ? 8 : 5.5, class: q === query ? "point query chosen" : "point query", tabindex: 0, role: "button", "aria-label": `query ${found.queryNames[q]}`, click: choose, keydown: (/** @type {any} */ e) => e.key === "Enter" && choose() }, draw("title", {}, `query ${found.queryNames[q]}`)));
  });
  for (const { x, y, anchor, text, kind } of names) svg.append(draw("text", { x, y, "text-anchor": anchor, class: `small ${kind}name` }, cut(text, 16)));
  svg.append(draw("circle", { cx: 12, cy: 12, r: 5, class: "point query" }), draw("text", { x: 22, y: 16, class: "small" }, "query"), draw("rect", { x: 68, y: 8, width: 8, height: 8, class: "point key", transform: "rotate(45 72 12)" }), draw("text", { x: 82, y: 16, class: "small" }, "key"));
  page.figure(drawn, "map");
  return [el("p", { class: "hint" }, "Distance in the map is not attention; the figures below say for this head how far the two agree. A click on a query draws its weights."), el("div", { class: "wide" }, drawn),
    el("ul", { class: "told" }, found.says.map((/** @type {string} */ each) => el("li", {}, each))),
    behind("These places as a table", () => table("Places in the plane", ["point", "token", "x", "y"], [["query", found.queryNames, found.queries], ["key", found.keyNames, found.keys]].flatMap(([what, of, where]) => where.map((/** @type {number[]} */ p, /** @type {number} */ i) => [what, of[i], numberText(p[0]), numberText(p[1])]))))];
}

/** Names where they cover no other. @param {any} found @param {(p: number[]) => number[]} at @param {number} wide */
function free(found, at, wide) {
  /** @type {number[][]} */
  const taken = [];
  const clear = (/** @type {number[]} */ [l, t, r, b]) => l > 0 && r < wide && t > 22 && taken.every(([a, c, d, e]) => r < a || l > d || b < c || t > e);
  for (const p of [...found.queries, ...found.keys]) {
    const [x, y] = at(p);
    taken.push([x - 5, y - 5, x + 5, y + 5]);
  }
  return [["query", found.queries, found.queryNames], ["key", found.keys, found.keyNames]].flatMap(([kind, of, names]) => of.flatMap((/** @type {number[]} */ p, /** @type {number} */ i) => {
    const [x, y] = at(p), width = 6.4 * [...cut(names[i], 16)].length;
    for (const [anchor, dx, dy] of /** @type {[string, number, number][]} */ ([["start", 9, 4], ["end", -9, 4], ["middle", 0, -10], ["middle", 0, 18], ["start", 7, -8], ["start", 7, 15], ["end", -7, -8], ["end", -7, 15]])) {
      const left = x + dx - (anchor === "end" ? width : anchor === "middle" ? width / 2 : 0), box = [left, y + dy - 10, left + width, y + dy + 3];
      if (clear(box)) return taken.push(box), [{ x: x + dx, y: y + dy, anchor, text: names[i], kind }];
    }
    return [];
  }));
}
