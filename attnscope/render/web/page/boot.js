// @ts-check
// The modules of the page and the style of what they draw are deflated; the policy above knows them by their hash, as it knows this script.
(async (place) => {
  const held = place.querySelector(":scope > template");
  if (held) place.attachShadow({ mode: "open" }).append(held.content); // where the browser did not
  const root = place.shadowRoot || document;
  const inflated = async (id) => {
    const packed = Uint8Array.from(atob(root.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  try {
    const look = new CSSStyleSheet(), script = document.createElement("script");
    look.replaceSync(await inflated("look"));
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, look];
    script.textContent = await inflated("code");
    place.append(script);
  } catch (error) {
    root.querySelector("footer").prepend(`This browser cannot draw the page (${error}): Chrome 80, Firefox 113, Safari 16.4 or later can.`);
  }
})(/** @type {any} */ (document.currentScript).parentElement);
