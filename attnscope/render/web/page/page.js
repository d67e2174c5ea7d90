// @ts-check
/** The page: which blocks it has, what they are given, and in which order they are drawn. */

import { around } from "./around.js";
import { both } from "./both.js";
import { across, byId, el, embedded, frame, root } from "./elements.js";
import { preferred, scaleOf, theme, themed } from "./figure.js";
import { grid, heads } from "./grid.js";
import { controls, keyed } from "./keys.js";
import { lines } from "./lines.js";
import { lists } from "./lists.js";
import { map } from "./map.js";
import { matrix } from "./matrix.js";
import { command, numbers, proof } from "./proof.js";
import { parts, product } from "./score.js";
import { begin, link, listen, pairNow, set, state, VIEWS } from "./state.js";
import { LONG, text } from "./text.js";
import { meanRow, readDocument, Reading } from "./weights.js";

/** @type {Record<string, (reading: any, page: any) => Promise<any[]>>} what this page has no use for is not in its file */
const DRAWN = { text: async () => [], both, lines, matrix, heads, product, parts, map, numbers, proof };
/** @type {Record<string, string>} */
const TITLES = { text: "Text", both: "Side by side", lines: "Lines", matrix: "Matrix", heads: "All heads", product: "Query x key", parts: "Parts of a score", map: "Map of queries and keys", numbers: "Numbers", proof: "Proof" };
const PAPER = [810, 940]; // pixels of a sheet of A4 or Letter between its margins, at the size of `frame.css`

const given = readDocument();
const media = given.picture ? "Picture" : given.sound ? "Sound" : "";
const readings = given.readings.map((/** @type {any} */ each) => new Reading(each));
/** @type {any} what the blocks may ask of the page */
const page = {
  given, readings, media, reading: readings[0] || null, verdicts: null, drawn: [], printing: false, pointing: null,
  reader: readings.length && text(byId("reader"), given), lists: readings.length && lists(byId("lists")),
  room: () => (page.printing ? PAPER : [Math.max(byId("view").clientWidth, 300), innerHeight - (besides() ? byId("view").offsetTop - frame.offsetTop + 30 : 190)]),
  figure: (/** @type {any} */ drawn, /** @type {string} */ name, /** @type {any[]} */ ...more) => page.drawn.push(...[drawn, ...more].filter(Boolean).map((each, i) => ({ drawn: each, name: i ? `${name}-${i}` : name }))),
  missing: (/** @type {string} */ what) => el("div", {}, el("p", {}, `${what} are not in this page.${opener() ? " This writes a page that holds them:" : ""}`), opener() && command(opener())),
  liveliest, there, allowed, paint, redraw,
  pointed: (/** @type {string} */ text) => byId("pointed") && (byId("pointed").textContent = text),
};

/** The command that writes a page of this head alone, where that is known. @returns {string} */
function opener() {
  return (page.reading?.it.command || given.opener || "").replace("{layer}", state.layer).replace("{head}", state.head);
}

/** The query that is surest of one key that is no special token, or the first. @param {Float32Array} weights @param {number} width */
function liveliest(weights, width) {
  const special = new Set(page.reading.it.keys.special), asking = new Set(page.reading.it.self ? page.reading.it.queries.special : []);
  let best = 0, most = -1;
  weights.forEach((w, i) => {
    const q = Math.floor(i / width), k = i % width;
    if (w > most && q !== k && !special.has(k) && !asking.has(q)) (best = q), (most = w);
  });
  return best;
}

/** The views that there is something for. @returns {string[]} */
function there() {
  const full = readings.some((/** @type {any} */ each) => Object.values(each.it.full).some((/** @type {any} */ f) => f.q));
  const many = readings.some((/** @type {any} */ each) => each.it.layers.length * each.it.heads.length > 1);
  /** @type {Record<string, any>} */
  const has = { text: read() && given.apart, both: given.both && readings.length > 1, lines: page.reading, matrix: page.reading, heads: many, product: full, parts: full, map: given.map, numbers: given.rows, proof: true };
  return VIEWS.filter((view) => has[view] && !given.below.includes(view));
}

/** Whether a text stands above the views, or in their place. */
const read = () => Boolean(page.reading && !given.both && (page.reading.it.queries.text || media));

/** Whether a text of some length and what is drawn of it stand beside each other where there is room, so that both are in sight. */
const besides = () => read() && !media && given.first === "text" && !given.apart && Math.max(page.reading.it.queries.names.length, page.reading.it.keys.names.length) > LONG;

/** What of an address this page has. @param {any} asked @returns {any} */
function allowed(asked) {
  const reading = readings[asked.side] || readings[0], found = { ...asked, side: readings[asked.side] ? asked.side : 0 };
  if (!there().includes(found.view)) found.view = there().includes(given.open.view) ? given.open.view : there()[0];
  if (!reading) return found;
  const known = () => reading.has(found.layer, found.head) || root.querySelector(`#sheet [href="#L${found.layer}H${found.head}"]`);
  if (!known()) (found.layer = given.open.layer), (found.head = given.open.head);
  if (!known()) (found.layer = reading.it.layers[0]), (found.head = reading.it.heads[0]);
  if (!(found.query < reading.it.queries.names.length)) found.query = null;
  if (!(found.key < reading.it.keys.names.length)) found.key = null;
  if (!["show", "hide", "renormalise"].includes(found.special)) found.special = "show";
  if (!/^[AB]-[AB]$/.test(found.pairs) || !reading.it.pair) found.pairs = "all";
  if (!["sqrt", "1", "max", "row", "log"].includes(found.scale)) found.scale = "sqrt";
  if (reading.it.kept && found.special === "renormalise") found.special = "show"; // a sum needs all of a row
  found.words = found.words && !reading.it.kept && Boolean(reading.it.queries.words || reading.it.keys.words);
  return found;
}

/** @param {string} wanted */
function paint(wanted) {
  themed.dataset.theme = wanted;
  redraw();
}

let turn = 0;

async function redraw() {
  const mine = ++turn, view = state.view;
  page.reading = readings[state.side] || null;
  page.drawn = [];
  page.pointing = null;
  themed.dataset.theme ||= theme();
  const held = embedded && root.activeElement, keep = () => held && !root.activeElement && frame.focus({ preventScroll: true });
  tabs();
  keep(); // without the focus it would hear no keys
  reserve();
  frame.classList.toggle("beside", besides());
  await verdict();
  await above(mine);
  const lacking = page.reading && !page.reading.has(state.layer, state.head) && !["text", "heads", "numbers", "proof"].includes(view);
  const parts = lacking ? [page.missing("The weights of this head")] : await DRAWN[view](page.reading, page);
  const below = [];
  for (const each of given.below) below.push(el("section", { "aria-label": TITLES[each] }, el("h2", { class: "part" }, TITLES[each]), (await DRAWN[each](page.reading, page)).flat(3)));
  if (mine !== turn) return;
  const kept = root.activeElement?.getAttribute("data-choice"), word = attributeOfFocus();
  byId("view").replaceChildren(...parts.flat(3).filter(Boolean));
  byId("below").replaceChildren(...below);
  byId("where").textContent = embedded ? "" : `What is shown stands at ${location.pathname.split("/").pop()}${link()}`;
  controls(page);
  lead();
  for (const each of root.querySelectorAll("#view .wide, #below .wide, #sheet .wide")) if (each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight) scrolled(each);
  const again = kept ? `[data-choice="${kept}"]` : word;
  if (again) /** @type {any} */ (root.querySelector(again))?.focus();
  keep();
  fit();
  frame.dataset.view = view;
  frame.dataset.ready = `${link()} ${view}`;
  performance.mark("drawn");
  await page.waiting;
  if (mine === turn) frame.dataset.thumbnails = "all", performance.mark("thumbnails");
}

/** On paper nothing can be scrolled: what is wider is made smaller. */
function fit() {
  for (const each of root.querySelectorAll(".wide > *")) {
    each.style.zoom = "";
    if (page.printing && each.scrollWidth > PAPER[0]) each.style.zoom = String(PAPER[0] / each.scrollWidth);
  }
}

/** @type {any} */
let current = null;
listen(() => {
  if (current) page.reader.point(current), page.lists.point(current);
  page.pointing?.();
});

/** The text and its lists, which stand there whatever view is open. @param {number} mine */
async function above(mine) {
  const reading = page.reading, there = reading && !given.both && reading.has(state.layer, state.head);
  byId("reader").hidden = !there || !read() || (given.apart && state.view !== "text");
  byId("lists").hidden = !there;
  frame.classList.toggle("reads", Boolean(there && read()));
  if (!there) return void (current = null);
  const seen = await reading.seen(state.layer, state.head);
  if (mine !== turn) return;
  const own = reading.it.self && (state.pairs === "all" || state.pairs[0] === state.pairs[2]);
  current = { seen, reading, own, scale: scaleOf(seen.weights, seen.keys.length, state.scale), mean: media && !seen.lossy ? meanRow(seen) : null };
  if (read()) page.reader.show(current);
  page.lists.point(current);
  if (state.aloud) byId("said").textContent = page.reader.told(current);
  state.aloud = false;
}

/** What is wider than the window can be moved with the keys too. @param {Element} wide */
function scrolled(wide) {
  wide.setAttribute("tabindex", "0"), wide.setAttribute("role", "group"), wide.setAttribute("aria-label", "wider than the window");
}

/** What finds the token that has the focus again, once it is drawn anew. @returns {string} */
function attributeOfFocus() {
  const found = /** @type {any} */ (root.activeElement);
  for (const name of ["query", "key"]) if (found?.dataset?.[name]) return `${found.tagName.toLowerCase()}[data-${name}="${found.dataset[name]}"]`;
  return "";
}

function tabs() {
  byId("tabs").replaceChildren(...there().map((view, i) => el("button", { role: "tab", id: `tab-${view}`, "aria-selected": view === state.view ? "true" : "false", tabindex: view === state.view ? 0 : -1, title: `key ${i + 1}`, click: () => set({ view }) }, (view === "text" && media) || TITLES[view])));
  byId("view").setAttribute("aria-labelledby", `tab-${state.view}`);
}

/** The verdict of the head that is looked at, of both where two stand beside each other; nothing hides it. */
async function verdict() {
  const reading = page.reading, pair = pairs();
  page.verdicts = reading ? reading.verdicts() : Promise.resolve(given.verdicts);
  if (!reading) return;
  const told = byId("of-head"), found = [];
  for (const [side, layer, head] of pair) {
    if (!side.has(layer, head)) continue;
    const own = await side.certificate(layer, head);
    found.push({ verdict: own.verdict || "none", text: `L${layer} H${head}: ${own.words}`, name: `L${layer} H${head}` });
  }
  const odd = found.filter((each) => !["certified", "recomputed", "none"].includes(each.verdict));
  told.hidden = !odd.length;
  told.className = odd.length ? `verdict ${odd[0].verdict}` : "";
  told.textContent = odd.map((each) => each.text).join("   |   ");
  byId("said").textContent = found.map((each) => `${each.name}, ${each.verdict}`).join("; ");
}

/** The heads that are looked at, each with the side it is on. @returns {any[][]} */
function pairs() {
  if (state.view !== "both") return [[page.reading, state.layer, state.head]];
  const [layer, head, other, another] = pairNow(given);
  return [[readings[0], layer, head], [readings[1], other, another]];
}

/** The small grid that leads. */
function lead() {
  const shape = leading();
  const held = byId("lead").contains(root.activeElement);
  if (!shape) return byId("lead").replaceChildren();
  const drawn = grid(page, leadRoom(shape), 34, true);
  byId("lead").replaceChildren(...[drawn, el("p", { class: "pointed", id: "pointed", "aria-live": "polite" })].filter(Boolean));
  if (held) drawn.focus();
}

/** Whether anything stands beside the view, so that it has the room that it will have. */
function reserve() {
  const shape = leading(), place = byId("lead");
  byId("page").classList.toggle("alone", !shape && (!page.reading || Boolean(given.both)));
  if (!shape) place.replaceChildren();
}

/** What the small grid shows, null where it is not needed. @returns {any} */
function leading() {
  return there().includes("heads") && state.view !== "heads" ? page.reading?.it || null : null;
}

/** How wide the small grid is. @param {any} shape */
function leadRoom(shape) {
  return Math.min(34 + shape.heads.length * 32, page.printing ? PAPER[0] : byId("lists").parentElement.clientWidth || across() - 28);
}

byId("page").hidden = false;
begin(given.open, allowed, redraw);
(embedded ? root : window).addEventListener("keydown", (/** @type {any} */ event) => keyed(page, event));
// the rows that a table of the sheet has no room for stand further down
root.addEventListener("click", (/** @type {any} */ event) => event.target.closest?.('[href="#view=numbers"]') && (event.preventDefault(), set({ view: "numbers" }), byId("tabs").scrollIntoView()));
if (given.first === "sheet") byId("tabs").before(byId("sheet"));
around(page);
redraw();
