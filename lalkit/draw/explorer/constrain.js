// Ask the page around this one to parse again: without the pinned constituent, or with another label over its words.
const part = (id) => constrain.querySelector(`#${id}`);
const ask = (kind, label) => {
  const { pane } = page;
  const of = pane.span();
  if (of && label) window.parent.postMessage({ [kind]: `${label}(${of.start + 1},${of.end})` }, "*");
};
part("forbid").addEventListener("click", () => ask("forbid", page.pane.span()?.label));
part("require").addEventListener("click", () => ask("require", part("label").value.trim().replace(/[\s()]/g, "")));
part("label").addEventListener("keydown", (event) => event.key === "Enter" && part("require").click());
