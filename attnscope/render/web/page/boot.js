// @ts-check
// The modules of the page are deflated; the policy above knows them by their hash, as it knows this script.
(async (place) => {
  const held = place.querySelector(":scope > template");
  if (held) place.attachShadow({ mode: "open" }).append(held.content); // where the browser did not
  const root = place.shadowRoot || document;
  try {
    const letters = atob(root.getElementById("code").textContent);
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    place.append(script);
  } catch (error) {
    root.querySelector("footer").prepend(`This browser cannot draw the page (${error}): Chrome 80, Firefox 113, Safari 16.4 or later can.`);
  }
})(/** @type {any} */ (document.currentScript).parentElement);
