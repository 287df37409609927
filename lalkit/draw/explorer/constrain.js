// The pinned phrase: the words that it could depend on, with their probabilities among all trees; and what the page around
// this one is asked for: to parse again without a constituent over these words, or with a certain label.
const part = (id) => constrain.querySelector(`#${id}`);
function showPhrase(of) {
  part("attachments").replaceChildren(...of.attachments.filter(([, , p], i) => i < 2 || p >= 0.0005).map(([head, word, probability]) => {
    const name = head ? `${word} (word ${head})` : "none: the root";
    const number = percent(probability);
    return make("li", {}, bar("div", { name, value: probability, number, spoken: `${name}: ${number}` }, 0, 1));
  }));
  part("forbid").title = `No constituent may have exactly the ${range(of)}, whatever its label: *${place(of)}`;
  part("forbid-label").title = `${of.label}${place(of)}; another label over these words is allowed`;
  part("forbid-label").textContent = `Not as ${of.label}`;
}
const range = (of) => `words ${of.start + 1} to ${of.end}`;
const place = (of) => `(${of.start + 1},${of.end})`;
const ask = (kind, label) => {
  const of = page.pane.span();
  if (of && label) window.parent.postMessage({ [kind]: `${label}${place(of)}` }, "*");
};
part("forbid").addEventListener("click", () => ask("forbid", "*"));
part("forbid-label").addEventListener("click", () => ask("forbid", page.pane.span()?.label));
part("require").addEventListener("click", () => ask("require", part("label").value.trim().replace(/[\s()]/g, "")));
part("label").addEventListener("keydown", (event) => event.key === "Enter" && part("require").click());
