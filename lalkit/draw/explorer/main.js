// The panes, what they share, and the address, which keeps what is shown.
// Panes are called by their parsers, or by their places where these have one name.
const SIDES = data.panes[0].model === data.panes.at(-1).model ? ["Left: ", "Right: "] : ["", ""];
const has = (name) => document.documentElement.classList.contains(name);
const page = {
  panes: [],
  pane: null, // the one in the panel
  dark: () => has("dark"),
  large: () => has("large"),
  // Let a pane use the panel. Pointing is not sure: a pinned constituent of the other pane stays there.
  claim(pane, sure) {
    if (pane === page.pane) return true;
    if (page.pane?.state.pinned && !sure) return false;
    page.pane = pane;
    find("panel").replaceChildren(...(page.panes.length > 1 ? [make("p", { className: "model" }, pane.name)] : []), pane.panel);
    if (!pane.picture()) return true; // nothing is drawn yet
    pane.showPanel();
    pane.showGold();
    return true;
  },
  redraw() {
    for (const pane of page.panes) pane.drawSentence();
    for (const pane of page.panes) pane.showPanel();
    page.pane.markSpan();
    page.pane.showPanel(); // last, because both panes share what is around the panel
  },
  // Keep what is shown in the address. A frame may forbid it.
  remember(push = false) {
    const hash = `#${written()}`;
    if (hash === location.hash) return;
    try {
      history[push ? "pushState" : "replaceState"](null, "", hash);
    } catch { /* the page works without it */ }
    if (data.framed) window.parent.postMessage({ state: hash.slice(1) }, "*");
  },
};

data.panes.forEach((one, i) => {
  const panel = make("div", {}, find(`panel-${one.kind}`).content.cloneNode(true));
  const drawing = make("div", { id: i ? "drawing-2" : "drawing", className: "drawing" });
  const name = data.panes.length > 1 ? `${SIDES[i]}${one.model}` : "Parse";
  drawing.setAttribute("role", "region");
  drawing.setAttribute("aria-label", name);
  if (data.panes.length > 1) drawing.append(make("p", { className: "pane" }, name));
  find("drawings").append(drawing);
  drawing.addEventListener("scroll", () => drawing.matches(":hover, :focus-within") && page.panes.forEach((pane) => {
    pane.drawing.scrollLeft = drawing.scrollLeft;
  }));
  page.panes.push(Object.assign(kinds[one.kind]({ ...one, constrain: data.constrain }, drawing, panel, i), { name }));
});
const { sentences } = data.panes[0];
let sought = null; // the sentence in which the last step of seek pinned no constituent
document.body.classList.toggle("two", page.panes.length > 1);
document.body.classList.toggle("single", sentences.length === 1);
document.body.classList.toggle("framed", Boolean(data.constrain || data.framed));

function showSentence(index) {
  if (index < 0 || index >= sentences.length) return;
  const focused = page.pane.drawing.contains(document.activeElement);
  shown.sentence = index;
  shown.folded.clear();
  for (const pane of page.panes) pane.begin();
  showShown();
  page.remember(true);
  if (focused && page.pane.boxes().length) page.pane.focusBox(0);
}

function showShown() {
  const index = shown.sentence;
  find("sentence").value = index;
  find("place").textContent = `${index + 1} of ${sentences.length}`;
  find("previous").disabled = index === 0;
  find("next").disabled = index === sentences.length - 1;
  find("sure").hidden = page.panes.every((pane) => pane.sentence().spans.every((of) => of.probability === undefined));
  find("least").value = shown.least;
  find("least-says").textContent = `${shown.least} %`;
  for (const mode of ["dark", "large"]) find(mode).setAttribute("aria-pressed", String(page[mode]()));
  page.redraw();
  page.pane.showGold();
  showLayers(sentences[index]);
  say(`sentence ${index + 1} of ${sentences.length}: ${sentences[index].words.join(" ")}`);
}

// Go to the next place of a kind (step 1) or to the one before (-1), in this sentence or another.
function seek(places, what, step) {
  const all = page.pane.data.sentences.flatMap((item, s) => places(item).map((place) => [s, place]));
  const unpinned = step < 0 || sought === shown.sentence ? -1 : -2;
  const here = [shown.sentence, page.pane.state.pinned ? page.pane.state.span : unpinned];
  const after = ([s, place]) => step * (s - here[0] || place - here[1]) > 0;
  const next = step > 0 ? all.find(after) : all.findLast(after);
  if (!next) return say(`there is no ${step > 0 ? "next" : "previous"} ${what}`);
  if (next[0] !== shown.sentence) showSentence(next[0]);
  sought = next[1] < 0 ? shown.sentence : null;
  return page.pane.select(page.pane.sentence().spans[next[1]] ?? null);
}

// Constituents that differ; -1 for a sentence in which only something else differs.
function errors({ spans, comparison }) {
  const wrong = spans.flatMap((of, i) => (of.gold && of.gold !== "same" ? [i] : []));
  return wrong.length || !comparison?.differs ? wrong : [-1];
}

function toggle(mode) {
  document.documentElement.classList.toggle(mode);
  showShown();
  page.remember();
}

function written() {
  const fields = { sentence: shown.sentence + 1, ...(shown.folded.size && { fold: [...shown.folded].join(".") }), ...(shown.least && { least: shown.least }) };
  if (page.dark() || prefersDark()) fields.dark = Number(page.dark());
  if (page.large()) fields.large = 1;
  page.panes.forEach((pane, i) => Object.entries(pane.write()).forEach(([key, value]) => { fields[i ? `${key}2` : key] = value; }));
  if (page.pane !== page.panes[0]) fields.pane = 2;
  return new URLSearchParams(fields).toString();
}

// Show what the address says. What cannot be is ignored.
function restore() {
  const fields = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  shown.sentence = wholeFrom(1, sentences.length + 1)(fields.sentence ?? "") - 1 || 0;
  shown.least = wholeFrom(0, 101)(fields.least ?? "") ?? 0;
  shown.folded.clear();
  const places = page.panes.flatMap((pane) => pane.sentence().spans.map((of) => `${of.start + 1}-${of.end}`));
  for (const place of (fields.fold ?? "").split(".")) if (places.includes(place)) shown.folded.add(place);
  document.documentElement.classList.toggle("dark", fields.dark ? fields.dark === "1" : prefersDark());
  document.documentElement.classList.toggle("large", fields.large === "1");
  page.panes.forEach((pane, i) => pane.read(i ? Object.fromEntries(Object.keys(fields).filter((key) => key.endsWith("2")).map((key) => [key.slice(0, -1), fields[key]])) : fields));
  page.claim(page.panes[fields.pane === "2" ? page.panes.length - 1 : 0], true);
  showShown();
}

function beginning(words) {
  const text = words.slice(0, 7).join(" ");
  return words.length > 7 ? `${text} …` : text;
}

const prefersDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const keys = {
  n: () => showSentence(shown.sentence + 1), p: () => showSentence(shown.sentence - 1),
  e: () => seek(errors, "difference", 1), E: () => seek(errors, "difference", -1),
  F: () => page.pane.fold(null), d: () => toggle("dark"), l: () => toggle("large"), "?": () => find("help").showModal(),
  Escape: () => page.pane.unpin() || page.pane.letGo(),
};
sentences.forEach((item, i) => {
  const id = item.id || `sentence ${i + 1}`;
  find("sentence").append(make("option", { value: i }, `${id}: ${beginning(item.words)}`));
});
find("size").value = "fit"; // a browser may remember what was chosen before a reload
find("errors").hidden = !sentences.some((item) => item.comparison);
find("sentence").addEventListener("change", (event) => showSentence(Number(event.target.value)));
for (const [id, key] of Object.entries({ previous: "p", next: "n", dark: "d", large: "l", "help-button": "?", "next-error": "e" })) {
  find(id).addEventListener("click", keys[key]);
}
find("close").addEventListener("click", () => find("help").close());
find("least").addEventListener("input", (event) => {
  shown.least = Number(event.target.value);
  showShown();
  page.remember();
});
const resize = () => page.panes.forEach((pane) => pane.resize());
find("size").addEventListener("change", resize);
window.addEventListener("resize", resize);
window.addEventListener("hashchange", restore);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("select, input, dialog")) return;
  if (Object.hasOwn(keys, event.key)) keys[event.key]();
});
// Paper is white.
const paint = (dark) => {
  document.documentElement.classList.toggle("dark", dark);
  page.redraw();
};
window.addEventListener("beforeprint", () => {
  const dark = page.dark();
  paint(false);
  window.addEventListener("afterprint", () => paint(dark), { once: true });
});
restore();
say("");
