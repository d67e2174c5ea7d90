// @ts-check
/** What is around the page: a window, paper, or a page of somebody else, whose colours and width are followed and whose address is not ours. */

import { across, byId, embedded, frame, root } from "./elements.js";
import { preferred, theme } from "./figure.js";
import { follow } from "./state.js";

/** @param {any} page */
export function around(page) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.paint(preferred()));
  if (embedded || (self !== top && origin === "null")) root.addEventListener("click", followed);
  if (embedded) within(page);
  else addEventListener("resize", () => page.redraw());
  printed(page);
}

/** A link to a head is followed without an address, where there is none of our own. @param {any} event */
function followed(event) {
  const found = event.target.closest?.('a[href^="#L"]');
  if (found) event.preventDefault(), follow(found.getAttribute("href"));
}

/** @param {any} page */
function within(page) {
  let width = across();
  const repainted = () => preferred() !== theme() && page.paint(preferred());
  new ResizeObserver(() => across() !== width && ((width = across()), page.redraw())).observe(frame);
  for (const each of [document.documentElement, document.body]) new MutationObserver(repainted).observe(each, { attributes: true });
  document.addEventListener("transitionend", repainted);
}

/** What is drawn was decoded already: it is drawn anew, in light colours and for paper, before the printer looks. @param {any} page */
function printed(page) {
  const lists = byId("lists"), lead = byId("lead"), home = lists.parentElement;
  let before = theme();
  /** @type {any[]} */
  let closed = [];
  addEventListener("beforeprint", () => {
    (before = theme()), (closed = [...root.querySelectorAll("#sheet details:not([open])")]), (page.printing = true);
    for (const each of closed) each.open = true;
    byId("reader").after(lists, lead);
    page.paint("light");
  });
  addEventListener("afterprint", () => {
    page.printing = false;
    for (const each of closed) each.open = false;
    home.append(lists, lead);
    page.paint(before);
  });
}
