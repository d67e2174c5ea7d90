// @ts-check
/** The text as it is read: what the chosen token looks at is shaded, what looks at it is underlined. */

import { boardOf } from "./board.js";
import { adopt, el, weightText } from "./elements.js";
import { css, inkOn, shadeColour, theme } from "./figure.js";
import { point, set, state } from "./state.js";
import { chosen, largest, numbered, placed } from "./weights.js";

export const LONG = 110; // tokens from which on a ruler stands beside the text, and contexts in the lists
const FEW = 28; // tokens up to which letters are large
const LEVELS = 32, UNBROKEN = 26; // shades; letters of what stands on one line because no blank is in it

/** @typedef {{role: "query"|"key", laid: number, names: string[], groups: number[][], root: HTMLElement, spans: HTMLElement[], paint: (values: Int32Array) => void}} Strip */

/**
 * The place of the text in the page. `current` is what is looked at: `seen`, its reading, its scale, whether both sides are
 * `own`, and the `mean` row where nothing is chosen.
 * @param {HTMLElement} root @param {any} given the document
 */
export function text(root, given) {
  const board = given.picture || given.sound ? boardOf(given) : null;
  const title = el("h2"), strips = el("div", { class: "strips" }), beside = ruler((i) => built[0]?.spans[i]?.scrollIntoView({ block: "center" }));
  root.append(title, legend(), el("div", { class: "ruled" }, strips, beside.root));
  /** @type {Strip[]} */
  let built = [];
  let shape = "";
  /** @type {any} */
  let now = null;
  root.addEventListener("keydown", (event) => {
    const { seen, own } = now, { q } = chosen(seen, own), width = seen.keys.length;
    if (event.key !== "Enter" || !own || q < 0) return;
    const [best] = largest(seen.weights, q * width, 1, width, 1).best;
    if (best) event.preventDefault(), set({ query: seen.rows[best.i][0], key: null, aloud: true });
  });
  return {
    /** @param {any} current */
    show(current) {
      const { seen, own, reading } = (now = current), looked = `${state.side} ${state.words} ${state.special} ${state.pairs}`;
      if (looked !== shape) {
        const what = board ? `The ${board.kind}, ${board.told}` : "The text";
        built = own ? [strip(seen.rows, reading.it.queries, seen.queries, "query", `${what}: arrow keys choose a token, Enter goes to what it looks at most`, board)]
          : [strip(seen.rows, reading.it.queries, seen.queries, "query", "What looks", null), strip(seen.columns, reading.it.keys, seen.keys, "key", `What is looked at${board ? `: ${board.told}` : ""}`, board)];
        strips.replaceChildren(...built.flatMap((each, i) => [!own && el("p", { class: "side" }, ["what looks", "what is looked at"][i]), each.root]).filter(Boolean), ...(board?.beside ? [board.beside] : []));
        shape = looked;
      }
      const most = Math.max(...built.map((each) => each.spans.length - each.laid)), long = most > LONG;
      root.className = most <= FEW ? "few" : long ? "long" : "mid";
      beside.root.hidden = !long;
      shades();
      board?.fit();
      if (long) beside.fit();
      this.point(current);
    },
    /** @param {any} current */
    point(current) {
      const { seen, own, scale, reading } = current, at = chosen(seen, own), width = seen.keys.length, least = width > LONG && !board ? 2 / width : 0;
      const mean = at.q < 0 && at.k < 0 ? current.mean : null;
      const looks = (/** @type {number} */ k) => {
        const w = mean ? mean[k] : at.q < 0 ? 0 : seen.weights[at.q * width + k];
        return Number.isNaN(w) ? (seen.lossy && at.q >= 0 && seen.absent(at.q, k) !== "masked" ? 0 : 512) : w < least ? 0 : Math.round(LEVELS * scale.shade(w, at.q));
      };
      const asks = (/** @type {number} */ q) => {
        const w = at.k < 0 ? 0 : seen.weights[q * width + at.k];
        return Number.isNaN(w) ? 0 : Math.min(6, Math.floor(Math.sqrt(w) * 6.4)) << 6;
      };
      const values = built.map((each) => {
        const found = new Int32Array(each.spans.length), mine = each.role === "query" ? at.q : at.k;
        for (let i = 0; i < found.length; i++) found[i] = (own || each.role === "key" ? looks(i) : 0) | (own || each.role === "query" ? asks(i) : 0) | (i === mine ? 1024 : 0);
        return found;
      });
      built.forEach((each, i) => each.paint(values[i]));
      const whose = mean ? "the mean over all queries" : at.q >= 0 ? placed(seen, seen.rows[at.q].slice(0, 1), seen.queries[at.q]) : at.k >= 0 ? `what looks at ${placed(seen, seen.columns[at.k].slice(0, 1), seen.keys[at.k])}` : "";
      const kept = reading.kept(state.layer, state.head), told = kept && `the ${kept.most} largest of each row are here, ${Math.floor(100 * kept.share)} % of its weight`;
      title.textContent = [`L${state.layer} H${state.head}`, whose, told].filter(Boolean).join(" · ");
      if (!beside.root.hidden) beside.draw(values, own, at.q);
      if (!state.hover) built.forEach((each) => selected(each, each.role === "query" ? at.q : at.k));
    },
    /** The picture or the sound as it is seen, for a file. */
    saved: () => (board ? [{ drawn: board.saved(), name: board.kind }] : []),
    /** What is said of a choice that was made with the keys. @param {any} current */
    told: ({ seen, own }) => {
      const at = chosen(seen, own), width = seen.keys.length, name = (/** @type {string[]} */ names) => (/** @type {any} */ e) => `${names[e.i]} ${weightText(e.w, 2)}`;
      const looks = at.q < 0 ? "" : `${seen.queries[at.q]} looks at ${largest(seen.weights, at.q * width, 1, width, 3).best.map(name(seen.keys)).join(", ")}.`;
      const asked = at.k < 0 ? "" : ` ${seen.keys[at.k]} is looked at by ${largest(seen.weights, at.k, width, seen.queries.length, 3).best.map(name(seen.queries)).join(", ")}.`;
      return looks + asked;
    },
  };
}

/** What shades and underlines mean. */
function legend() {
  const ramp = el("span", { class: "ramp" }, Array.from({ length: LEVELS }, (_, i) => el("i", { class: `l${i + 1}` })));
  return el("p", { class: "key" }, el("span", {}, "it looks at: 0 ", ramp, " 1"), el("span", {}, "looks at it: ", ...[1, 3, 6].map((i) => el("i", { class: `under u${i}` }))));
}

/**
 * One side of what was read, a token or a word each; those that lie on the board stand there.
 * @param {number[][]} groups @param {any} tokens @param {string[]} names @param {"query"|"key"} role @param {string} label
 * @param {import("./board.js").Board|null} board @returns {Strip}
 */
function strip(groups, tokens, names, role, label, board) {
  const special = new Set(tokens.special), inner = new Set((tokens.unit === "words" && tokens.words || []).flatMap((/** @type {number[]} */ word) => word.slice(1)));
  const root = el("div", { class: "text", role: "listbox", tabindex: 0, "aria-label": label, "aria-orientation": "horizontal", id: `text-${role}` });
  const shown = groups.map((group, i) => group.map((t, j) => (j ? tokens.gaps[t] : "") + (tokens.said[t] ?? tokens.names[t])).join("") || names[i]);
  const place = groups.map(([t]) => board?.places.get(t) ?? -1), laid = place.filter((i) => i >= 0).length;
  const base = groups.map(([t], i) => (place[i] >= 0 ? "t cell" : special.has(t) ? "t s" : inner.has(t) ? "t o" : "t"));
  const spans = shown.map((letters, i) => el("span", { class: base[i], role: "option", id: `${role}${groups[i][0]}`, "data-at": i, "aria-selected": "false", "aria-label": placed({ numbered: state.words && numbered(tokens) }, groups[i].slice(0, 1), names[i]) }, place[i] < 0 && letters));
  /** @type {any} */
  let run = null;
  let held = 0;
  spans.forEach((span, i) => {
    if (board && place[i] >= 0) return void board.put(span, place[i]);
    const own = special.has(groups[i][0]), gap = own || (i > 0 && special.has(groups[i - 1][0])) ? tokens.gaps[groups[i][0]] || " " : tokens.gaps[groups[i][0]];
    if (run && gap) root.append(gap), (run = null);
    if (run && held + shown[i].length < UNBROKEN) run.append(span), (held += shown[i].length);
    else (run = el("span", { class: "run", role: "presentation" }, span)), (held = shown[i].length), root.append(run);
  });
  if (board && laid) {
    root.append(board.root);
    board.follow((i) => point(choice(place.indexOf(i))), () => point(null));
  }
  const at = (/** @type {any} */ event) => Number(event.target.closest?.(".t")?.dataset.at ?? -1), other = role === "query" ? "key" : "query";
  const choice = (/** @type {number} */ i) => ({ [role]: groups[i][0], [other]: null });
  root.addEventListener("pointerover", (/** @type {any} */ e) => e.pointerType !== "touch" && at(e) >= 0 && point(choice(at(e))));
  root.addEventListener("pointerleave", (/** @type {any} */ e) => e.pointerType !== "touch" && state.hover && point(null));
  root.addEventListener("click", (/** @type {any} */ e) => {
    if (at(e) < 0) return;
    if (board && place[at(e)] >= 0) board.go(place[at(e)]);
    set(choice(at(e)));
  });
  root.addEventListener("keydown", (/** @type {any} */ event) => {
    if (event.key === " " && board) return void (event.preventDefault(), event.stopPropagation(), board.play());
    const i = Math.max(spans.findIndex((each) => each.getAttribute("aria-selected") === "true"), 0), to = next(event.key, spans, i);
    if (to === null || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault(), event.stopPropagation();
    set({ ...choice(to), aloud: true });
    spans[to].scrollIntoView({ block: "nearest" });
  });
  const before = new Int32Array(spans.length).fill(-1);
  const paint = (/** @type {Int32Array} */ values) => values.forEach((value, i) => {
    if (before[i] === value) return;
    before[i] = value;
    const shade = value & 63, under = (value >> 6) & 7;
    spans[i].className = `${base[i]}${shade ? ` l${shade}` : ""}${under ? ` u${under}` : ""}${value & 512 ? " masked" : ""}${value & 1024 ? " chosen" : ""}`;
  });
  return { role, laid, names, groups, root, spans, paint };
}

/** Where a key leads from a token: along the text, or to the nearest one of the next line. @param {string} key @param {HTMLElement[]} spans @param {number} i @returns {number|null} */
function next(key, spans, i) {
  const along = { ArrowRight: Math.min(i + 1, spans.length - 1), ArrowLeft: Math.max(i - 1, 0), Home: 0, End: spans.length - 1 }[key];
  if (along !== undefined) return along;
  const way = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (!way) return null;
  const boxes = spans.map((each) => each.getBoundingClientRect()), own = boxes[i];
  const found = boxes.map((box, j) => ({ j, down: (box.top - own.top) * way, across: Math.abs(box.left - own.left) })).filter((each) => each.down > own.height * 0.7);
  found.sort((a, b) => a.down - b.down);
  const line = found.filter((each) => each.down < found[0].down + 8).sort((a, b) => a.across - b.across);
  return line.length ? line[0].j : i;
}

/** @param {Strip} strip @param {number} i */
function selected(strip, i) {
  strip.root.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
  strip.spans[i]?.setAttribute("aria-selected", "true");
  if (i >= 0) strip.root.setAttribute("aria-activedescendant", strip.spans[i].id);
  else strip.root.removeAttribute("aria-activedescendant");
}

/** @type {CSSStyleSheet|null} */
let rules = null;
let drawnFor = "";

/** The rules of all shades, in the colours of the theme. */
function shades() {
  if (!rules) adopt((rules = new CSSStyleSheet()));
  if (drawnFor === theme()) return;
  drawnFor = theme();
  const colours = Array.from({ length: LEVELS }, (_, i) => shadeColour((i + 1) / LEVELS));
  rules.replaceSync(`.page{--none:${css(shadeColour(0))}}` + colours.map((colour, i) => `.l${i + 1}{--shade:${css(colour)};background-color:var(--shade);color:${inkOn(colour)}}`).join("") + Array.from({ length: 6 }, (_, i) => `.u${i + 1}{box-shadow:inset 0 -${i + 1}px 0 var(--asks)}`).join(""));
}

const WIDE = 26, MIDDLE = 13;

/** All of a long text in small beside it: on the left what the chosen token looks at, on the right what looks at it. @param {(i: number) => void} go shows the token at a place */
function ruler(go) {
  const root = el("canvas", { class: "ruler", "aria-hidden": "true" }), pen = root.getContext("2d");
  let count = 1;
  root.addEventListener("click", (/** @type {any} */ event) => {
    const box = root.getBoundingClientRect();
    go(Math.min(count - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * count))));
  });
  let tall = 120;
  /** @type {Record<string, string>} */
  let colours = {};
  /** Its size and its colours, which a pointer that moves does not change. */
  function fit() {
    const style = getComputedStyle(root), fine = Math.min(devicePixelRatio, 2);
    colours = Object.fromEntries(["rule", "line", "asks", "chosen"].map((name) => [name, style.getPropertyValue(`--${name}`)]));
    tall = Math.max(120, Math.min(innerHeight - 40, 720, root.parentElement.clientHeight));
    root.width = WIDE * fine, root.height = tall * fine, (root.style.height = `${tall}px`);
    pen.scale(fine, fine);
  }
  /** @param {Int32Array[]} values as the text is painted with @param {boolean} own @param {number} query */
  function draw(values, own, query) {
    const colour = (/** @type {string} */ name) => colours[name], [asking, looked] = [values[0], own ? values[0] : values[1]];
    count = asking.length;
    pen.clearRect(0, 0, WIDE, tall);
    pen.fillStyle = colour("rule"), pen.fillRect(MIDDLE - 0.5, 0, 1, tall);
    const marks = (/** @type {Int32Array} */ of, /** @type {(v: number) => number} */ share, /** @type {number} */ way, /** @type {string} */ name) => {
      pen.fillStyle = colour(name);
      of.forEach((value, i) => {
        const s = share(value), wide = 12 * s;
        if (s > 0.1) pen.fillRect(way < 0 ? MIDDLE - 1 - wide : MIDDLE + 1, (i / of.length) * tall, wide, Math.max(1.6, tall / of.length));
      });
    };
    marks(looked, (value) => (value & 63) / 32, -1, "line");
    marks(asking, (value) => ((value >> 6) & 7) / 6, 1, "asks");
    pen.fillStyle = colour("chosen");
    if (query >= 0) pen.fillRect(MIDDLE - 5, (query / count) * tall - 1, 10, 3);
  }
  return { root, fit, draw };
}
