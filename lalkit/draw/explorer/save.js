// Save what is shown, with its styles, as a file.
const MOST_PIXELS = 12000; // the longest side of a canvas that browsers draw

const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "visibility", "font-weight", "text-decoration"];

// A copy that needs no style sheet, so that every program draws it alike.
function copyOf(picture) {
  const copy = picture.cloneNode(true);
  const items = [...picture.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((item, i) => {
    const style = getComputedStyle(items[i]);
    item.removeAttribute("style");
    for (const name of LOOK) item.setAttribute(name, style.getPropertyValue(name));
  });
  copy.removeAttribute("style");
  return copy;
}

// The trees side by side, and below them the bars of the panel.
function standalone() {
  const style = getComputedStyle(document.body);
  const ground = shape("rect", { fill: style.backgroundColor });
  const title = shape("title", {}, `${find("constituent").textContent} | ${sentences[shown.sentence].words.join(" ")}`);
  const whole = shape("svg", { role: "img", "font-family": style.fontFamily }, title, ground);
  let [width, height] = [0, 0];
  const put = (piece, x, y) => {
    const [, , wide, high] = numbers(piece.getAttribute("viewBox"));
    for (const [name, value] of Object.entries({ x, y, width: wide, height: high })) piece.setAttribute(name, value);
    [width, height] = [Math.max(width, x + wide), Math.max(height, y + high)];
    whole.append(piece);
  };
  for (const pane of page.panes) put(copyOf(pane.picture()), width, 0);
  const bars = [...find("panel").querySelectorAll(".bar")].filter((item) => !item.closest("[hidden], #constrain"));
  if (bars.length) put(barsPicture(bars, style.color), 0, height);
  for (const item of [whole, ground]) for (const [name, value] of Object.entries({ width, height })) item.setAttribute(name, value);
  whole.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { text: new XMLSerializer().serializeToString(whole), width, height };
}

function barsPicture(bars, fill) {
  const picture = shape("svg", { viewBox: `0 0 620 ${30 + 22 * bars.length}` });
  const write = (x, y, text) => picture.append(shape("text", { x, y, "font-size": 14, fill }, text));
  write(16, 16, find("constituent").textContent);
  bars.forEach((item, row) => {
    const [line, y] = [item.querySelector(".track i"), 38 + 22 * row];
    const [left, width] = [line.style.left, line.style.width].map((text) => 3 * parseFloat(text));
    write(16, y, item.querySelector(".name").textContent);
    picture.append(shape("rect", { x: 200 + left, y: y - 11, width: Math.max(width, 1), height: 12, fill: getComputedStyle(line).getPropertyValue(line.className ? "--red" : "--blue") }));
    write(520, y, item.querySelector(".number").textContent);
  });
  return picture;
}

function save(blob, suffix) {
  const name = sentences[shown.sentence].id.replace(/[^\p{L}\p{N}_-]+/gu, "-") || `sentence-${shown.sentence + 1}`;
  const link = make("a", { href: URL.createObjectURL(blob), download: `${name}.${suffix}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`saved ${name}.${suffix}`);
}

find("save-svg").addEventListener("click", () => save(new Blob([standalone().text], { type: "image/svg+xml" }), "svg"));
find("save-png").addEventListener("click", () => {
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
find("print").addEventListener("click", () => window.print());
