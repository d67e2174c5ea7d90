// @ts-check
// The modules of the page are deflated; the policy above knows them by their hash, as it knows this script.
(async () => {
  const letters = atob(document.getElementById("code")?.textContent || "");
  const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.body.append(script);
})().catch((error) => {
  document.querySelector("footer")?.replaceChildren(`This browser cannot draw the page (${error}): Chrome 80, Firefox 113, Safari 16.4 or later can.`);
});
