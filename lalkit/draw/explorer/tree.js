// The drawing: pointing at constituents, pinning them, shading words, and moving by keys.
drawing.append(make("div")); // its place, before the first sentence is drawn
const picture = () => drawing.querySelector(".parse");
const boxes = () => [...picture().querySelectorAll(".constituent")];
const cell = (kind, column) => picture().querySelector(`.${kind}[data-column="${column}"]`);

function drawSentence() {
  const template = document.querySelector(`template[data-pane="${place}"][data-sentence="${shown.sentence}"]`);
  drawing.lastElementChild.replaceWith(template.content.firstElementChild.cloneNode(true));
  const last = sentence().words.length + 1;
  picture().querySelectorAll('[data-column="last"]').forEach((item) => item.setAttribute("data-column", last));
  picture().classList.toggle("dark", page.dark());
  if (shown.folded.size || shown.least) arrange();
  picture().dataset.view = picture().getAttribute("viewBox");
  if (span() && !isShown(span())) Object.assign(state, { span: null, pinned: false });
  resize();
  startAtWords();
  nameBoxes();
  markSpan();
  markHeat();
  markSure();
}

// A constituent is as faint as it is improbable; the faintest black (white, in dark mode) still has a contrast of 4.5.
function markSure() {
  for (const veil of picture().querySelectorAll(".veil")) {
    veil.style.opacity = 0.45 * (1 - (sentence().spans[veil.dataset.span].probability ?? 1));
  }
}

// Fit the width. Words stay at least as large as READABLE. A small tree is not made taller than its frame. In the page on which
// sentences are typed, a wide tree has the whole frame. Its panel stands below it, and on it while a constituent is pinned.
function resize() {
  const [left, , whole, height] = numbers(picture().dataset.view);
  const side = picture().matches(".attended:not(.inside)") ? 0 : -left; // the room of START and STOP, if nothing looks at them
  const width = whole - 2 * side;
  picture().setAttribute("viewBox", `${left + side} 0 ${width} ${height}`);
  const size = find("size").value;
  const above = drawing.querySelector(".pane")?.offsetHeight ?? 0;
  const framed = document.body.matches(".framed") && matchMedia("(min-width: 1081px)").matches; // without scrolling
  const fit = () => {
    const tallest = (parseFloat(getComputedStyle(drawing).maxHeight) || Infinity) - above - 2; // on paper there is no limit
    const room = tallest < Infinity ? tallest : drawing.clientHeight - 2;
    return Math.min((drawing.clientWidth - 2) / width, framed ? room / height : Math.max(1, tallest / height));
  };
  const smallest = (name) => READABLE[page.large() ? "large" : name] / 15;
  document.body.classList.remove("wide");
  let least = smallest("small");
  if (framed && fit() < least) {
    document.body.classList.add("wide");
    least = smallest("wide");
  }
  const scale = size === "fit" ? Math.max(least, fit()) : Number(size);
  picture().style.width = `${width * scale}px`;
  picture().style.height = `${height * scale}px`;
}

// A tree taller than its frame begins with its words in view.
function startAtWords() {
  drawing.scrollTo(0, 0);
  const below = cell("heat", 0).getBoundingClientRect().bottom - drawing.getBoundingClientRect().bottom;
  drawing.scrollTo(0, Math.max(0, below + 24));
}

function nameBoxes() {
  for (const box of boxes()) box.setAttribute("aria-label", describe(sentence().spans[box.dataset.span]));
}

function markSpan() {
  for (const box of boxes()) {
    const here = Number(box.dataset.span) === state.span;
    box.classList.toggle("pointed", here && !state.pinned);
    box.classList.toggle("pinned", here && state.pinned);
    box.setAttribute("aria-selected", String(here && state.pinned));
    if (here) document.body.classList.toggle("right", box.getBoundingClientRect().left > innerWidth / 2);
  }
  if (pane === page.pane) for (const one of page.panes) one.shade(span(), "pointed"); // the same words in the other pane, too
}

// Shade the words of a constituent. kind: "pointed", or "ghost" for a constituent of gold that is missing.
function shade(of, kind) {
  const rect = picture()?.querySelector(".shade");
  if (!rect) return;
  rect.setAttribute("class", of ? `shade ${kind}` : "shade");
  if (!of || !cell("heat", of.end)) return;
  const edge = (column, key) => Number(cell("heat", column).getAttribute(key));
  const left = edge(of.start + 1, "x") - 4;
  rect.setAttribute("x", left);
  rect.setAttribute("width", edge(of.end, "x") + edge(of.end, "width") + 4 - left);
}

// From white to #56b4e9, or to #e69f00 for numbers below 0; from #121212 to darker ones in dark mode. Text stays readable.
function shadeOf(part) {
  const ground = page.dark() ? 18 : 255;
  const full = page.dark() ? [[0, 100, 160], [150, 80, 0]] : [[86, 180, 233], [230, 159, 0]];
  return `rgb(${full[part < 0 ? 1 : 0].map((one) => Math.round(ground + (one - ground) * Math.abs(part))).join(", ")})`;
}

// Shade words, START and STOP as the panel says. A column without a number stays white.
function markHeat() {
  const colours = heat();
  picture().classList.toggle("attended", colours !== null);
  picture().classList.toggle("inside", colours !== null && colours.number(0) === null);
  const names = ["START", ...sentence().words, "STOP"];
  names.forEach((name, column) => {
    const rect = cell("heat", column);
    const number = colours && colours.number(column);
    const where = column > 0 && column < names.length - 1 ? `word ${column}: ${name}` : name;
    rect.style.fill = number === null ? "" : colours.colour(column);
    rect.querySelector("title").textContent = number !== null
      ? `${where}: ${colours.tip(column)}`
      : column > 0 && column < names.length - 1 ? where : "";
    cell("number", column).textContent = number === null ? "" : minus(String(number));
  });
  resize();
}

function point(index) {
  if (!page.claim(pane, false) || state.pinned || index === state.span) return;
  state.span = index;
  markSpan();
  showPanel();
}

function pin(index) {
  page.claim(pane, true);
  const same = state.pinned && index === state.span;
  state.span = index;
  state.pinned = !same;
  markSpan();
  showPanel();
  page.remember(true);
  say(same ? "unpinned" : `pinned: ${describe(span())}`);
}

function unpin() {
  if (!state.pinned) return false;
  state.pinned = false;
  markSpan();
  showPanel();
  page.remember();
  say("unpinned");
  return true;
}

// One constituent at a time is reached by Tab; arrows lead to the others.
function focusBox(index) {
  for (const box of boxes()) box.setAttribute("tabindex", Number(box.dataset.span) === index ? "0" : "-1");
  const box = picture().querySelector(`.constituent[data-span="${index}"]`);
  if (!box) return;
  box.focus({ preventScroll: true });
  box.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function neighbour(index, key) {
  const spans = sentence().spans;
  const drawn = boxes().map((box) => Number(box.dataset.span));
  const above = (i) => (i === null || drawn.includes(i) ? i : above(spans[i].parent));
  const parent = (i) => above(spans[i].parent);
  if (key === "Home") return drawn[0];
  if (key === "End") return drawn.at(-1);
  if (key === "ArrowUp") return parent(index);
  if (key === "ArrowDown") return drawn.find((other) => parent(other) === index) ?? null;
  const peers = drawn.filter((i) => parent(i) === parent(index));
  return peers[peers.indexOf(index) + (key === "ArrowRight" ? 1 : -1)] ?? null;
}

const indexOf = (event) => {
  const box = event.target.closest(".constituent, .fold");
  return box && Number(box.dataset.span);
};

drawing.addEventListener("pointerover", (event) => {
  const index = indexOf(event);
  if (index !== null) point(index);
});
drawing.addEventListener("focusin", (event) => {
  const index = indexOf(event);
  if (index !== null) point(index);
});
drawing.addEventListener("click", (event) => {
  const index = indexOf(event);
  if (event.target.closest(".heat") && page.claim(pane, true)) chooseColumn(Number(event.target.dataset.column));
  if (index === null) return;
  if (event.target.closest(".fold")) fold(index);
  else pin(index);
  focusBox(index);
});
drawing.addEventListener("dblclick", (event) => {
  if (indexOf(event) === null || event.target.closest(".fold")) return;
  fold(indexOf(event));
  focusBox(state.span);
});
drawing.addEventListener("keydown", (event) => {
  const index = indexOf(event);
  if (index === null || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") pin(index);
  else if (event.key === "f") {
    fold(index);
    focusBox(index);
  }
  else if (/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key)) {
    const next = neighbour(index, event.key);
    if (next !== null) focusBox(next);
  } else return;
  event.preventDefault();
});
