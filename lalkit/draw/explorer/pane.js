// What the page asks of a pane.
function select(of) {
  state.span = of ? sentence().spans.indexOf(of) : null;
  state.pinned = Boolean(of);
  if (of) for (const one of above(of)) shown.folded.delete(placeOf(one));
  page.redraw();
  if (of) picture().querySelector(`.constituent[data-span="${state.span}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  page.remember(true);
  say(of ? `pinned: ${describe(of)}` : "");
}

// Begin a sentence: nothing is chosen in it.
function begin() {
  Object.assign(state, { span: null, pinned: false, ...("word" in state ? { word: null } : {}) });
}

function showGold() {
  const { comparison } = sentence();
  find("gold").hidden = !comparison;
  find("missing").replaceChildren();
  if (!comparison) return;
  find("comparison").textContent = comparison.line;
  find("missing-title").hidden = !comparison.missing.length;
  for (const lost of comparison.missing) {
    const button = make("button", { type: "button" }, `${lost.label}, ${range(lost)}: ${wordsOf(lost)}`);
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => shade(lost, "ghost"));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => shade(span(), "pointed"));
    find("missing").append(make("li", {}, button));
  }
}

// The pane's part of the address, and back.
function write() {
  const found = state.pinned ? { span: placeOf(span()) } : {};
  for (const key of Object.keys(kept)) if (state[key] !== null && state[key] !== first[key]) found[key] = state[key];
  return found;
}

function read(found) {
  Object.assign(state, first, { span: null, pinned: false });
  const index = sentence().spans.findIndex((of) => placeOf(of) === found.span);
  if (index >= 0) Object.assign(state, { span: index, pinned: true });
  for (const [key, value] of Object.entries(kept)) if (key in found) state[key] = value(found[key]) ?? first[key];
}

const first = Object.fromEntries(Object.keys(kept).map((key) => [key, state[key]]));
const pane = { data, drawing, panel, state, sentence, span, begin, picture, drawSentence, markSpan, showPanel, showGold, shade, resize, unpin, letGo, fold, select, boxes, focusBox, markHeat, write, read };
return pane;
