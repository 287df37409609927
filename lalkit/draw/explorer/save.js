// Save the tree as it is shown, with its styles, as a file.
const MOST_PIXELS = 12000; // the longest side of a canvas that browsers draw

function standalone() {
  const copy = picture().cloneNode(true);
  const style = document.createElementNS(copy.namespaceURI, "style");
  style.textContent = byId("tree-style").textContent;
  copy.prepend(style);
  const [, , width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
  copy.removeAttribute("style");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

function save(blob, suffix) {
  const name = sentence().id.replace(/[^\p{L}\p{N}_-]+/gu, "-") || `sentence-${state.sentence + 1}`;
  const link = make("a", { href: URL.createObjectURL(blob), download: `${name}.${suffix}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`saved ${name}.${suffix}`);
}

byId("save-svg").addEventListener("click", () => save(new Blob([standalone().text], { type: "image/svg+xml" }), "svg"));
byId("save-png").addEventListener("click", () => {
  const { text, width, height } = standalone();
  const scale = Math.min(2, MOST_PIXELS / Math.max(width, height));
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = make("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => (blob ? save(blob, "png") : say("the drawing is too large for a PNG: save it as an SVG")));
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
});
byId("print").addEventListener("click", () => window.print());
