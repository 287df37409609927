// Choose a sentence, show how it differs from gold, and start the page.
function showSentence(index) {
  if (index < 0 || index >= data.sentences.length) return;
  const focused = drawing.contains(document.activeElement);
  Object.assign(state, { sentence: index, span: null, pinned: false, folded: new Set() });
  byId("sentence").value = index;
  byId("place").textContent = `${index + 1} of ${data.sentences.length}`;
  byId("previous").disabled = index === 0;
  byId("next").disabled = index === data.sentences.length - 1;
  drawSentence();
  showPanel();
  showGold();
  say(`sentence ${index + 1} of ${data.sentences.length}: ${sentence().words.join(" ")}`);
  if (focused && boxes().length) focusBox(0);
}

function showGold() {
  const { comparison } = sentence();
  byId("gold").hidden = !comparison;
  byId("missing").replaceChildren();
  if (!comparison) return;
  byId("comparison").textContent = comparison.line;
  byId("missing-title").hidden = !comparison.missing.length;
  for (const lost of comparison.missing) {
    const button = make("button", { type: "button" }, `${lost.label}, ${range(lost)}: ${wordsOf(lost)}`);
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => shade(lost, "ghost"));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => shade(span(), "pointed"));
    byId("missing").append(make("li", {}, button));
  }
}

function beginning(words) {
  const text = words.slice(0, 7).join(" ");
  return words.length > 7 ? `${text} …` : text;
}

data.sentences.forEach((item, i) => {
  const id = item.id || `sentence ${i + 1}`;
  byId("sentence").append(make("option", { value: i }, `${id}: ${beginning(item.words)}`));
});
byId("size").value = "fit"; // a browser may remember what was chosen before a reload
byId("sentence").addEventListener("change", (event) => showSentence(Number(event.target.value)));
byId("previous").addEventListener("click", () => showSentence(state.sentence - 1));
byId("next").addEventListener("click", () => showSentence(state.sentence + 1));
byId("size").addEventListener("change", resize);
window.addEventListener("resize", resize);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("select, input")) return;
  if (event.key === "n") showSentence(state.sentence + 1);
  else if (event.key === "p") showSentence(state.sentence - 1);
  else if (event.key === "F") fold(null);
  else if (event.key === "Escape" && !unpin()) letGo();
});
showSentence(0);
say("");
