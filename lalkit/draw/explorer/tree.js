// What is drawn of a sentence: folded constituents are one word, and improbable ones are hidden.
const placeOf = (of) => `${of.start + 1}-${of.end}`;
const likely = (of) => (of.probability ?? 1) >= shown.least / 100;
const folded = (of) => shown.folded.has(placeOf(of)) && likely(of) && of.end - of.start > 1;
const above = (of) => (of.parent === null ? [] : [sentence().spans[of.parent], ...above(sentence().spans[of.parent])]);
const isShown = (of) => likely(of) && !above(of).some(folded);

// Fold a constituent, or open it again. Without one, open all.
function fold(index) {
  const of = index === null ? null : sentence().spans[index];
  if (of === null) shown.folded.clear();
  else if (of.end - of.start < 2) return say("a constituent of one word cannot be folded");
  else if (!shown.folded.delete(placeOf(of))) shown.folded.add(placeOf(of));
  page.redraw();
  page.remember();
  return say(of ? `${folded(of) ? "folded" : "opened"}: ${describe(of)}` : "all constituents are open");
}

// The drawing: pointing at constituents, pinning them, shading words, and moving by keys.
drawing.append(make("div")); // its place, before the first sentence is drawn
const picture = () => drawing.querySelector(".parse");
const boxes = () => [...picture().querySelectorAll(".constituent")];
const cell = (kind, column) => picture().querySelector(`.${kind}[data-column="${column}"]`);

function drawSentence() {
  drawing.lastElementChild.replaceWith(draw(sentence(), folded, (of) => !isShown(of)));
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
  if (!of) return;
  const edge = (word) => {
    const cell = [...picture().querySelectorAll(".heat")].find(({ dataset }) => dataset.start <= word && word <= dataset.column);
    return [Number(cell.getAttribute("x")), Number(cell.getAttribute("width"))];
  };
  const [[left], [right, width]] = [edge(of.start + 1), edge(of.end)];
  rect.setAttribute("x", left - 4);
  rect.setAttribute("width", right + width + 8 - left);
}

// Shade words, START and STOP as the panel says: from white to blue, or to orange for numbers below 0.
function markHeat() {
  const colours = heat();
  picture().classList.toggle("attended", colours !== null);
  picture().classList.toggle("inside", colours !== null && colours.number(0) === null);
  const names = ["START", ...sentence().words, "STOP"];
  for (const rect of picture().querySelectorAll(".heat")) {
    const [start, column] = [rect.dataset.start, rect.dataset.column].map(Number);
    const number = colours && start === column ? colours.number(column) : null;
    const where = column > 0 && column < names.length - 1 ? `word ${column}: ${names[column]}` : names[column];
    const part = number === null ? 0 : colours.part(column);
    rect.style.fillOpacity = Math.abs(part);
    rect.classList.toggle("least", part < 0);
    rect.querySelector("title").textContent = number !== null ? `${where}: ${colours.tip(column)}` : where;
    cell("number", column).textContent = number === null ? "" : minus(String(number));
  }
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
