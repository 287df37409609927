// The label heads behind the constituent, as bars around a zero line.
function showBars() {
  const of = span();
  byId("norm-says").textContent = data.norms[state.norm];
  byId("bars").replaceChildren();
  byId("more-heads").hidden = true;
  if (!of) {
    byId("constituent").textContent = "Point at a constituent";
    byId("about").textContent = sentence().spans.length
      ? "The label heads behind it will be listed here. A click (or Enter) pins it, Esc lets it go."
      : "This sentence has no constituents.";
    return;
  }
  byId("constituent").textContent = `${of.label}${of.group ? " (a group, no constituent)" : ""}: ${wordsOf(of)}`;
  const word = of.head ? `, head word ${sentence().words[of.head - 1]}` : "";
  byId("about").textContent = `${capital(range(of))}${word}${against(of)}. ${state.pinned ? "Pinned; Esc lets it go." : ""}`;
  const found = ranked(of);
  const low = Math.min(0, ...values(of));
  const high = Math.max(0, ...values(of));
  const shown = state.allHeads ? found : found.slice(0, FEW);
  byId("bars").append(...shown.map((item) => make("li", {}, bar(item, low, high))));
  byId("more-heads").hidden = found.length <= FEW;
  byId("more-heads").textContent = state.allHeads ? `Show the first ${FEW} only` : `Show all ${found.length} label heads`;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function bar({ head, value }, low, high) {
  const across = (x) => (high > low ? (100 * (x - low)) / (high - low) : 0);
  const line = make("i", { className: value < 0 ? "below" : "" });
  line.style.left = `${across(Math.min(0, value))}%`;
  line.style.width = `${Math.abs(across(value) - across(0))}%`;
  const zero = make("b");
  zero.style.left = `${across(0)}%`;
  const track = make("span", { className: "track" }, line, zero);
  track.setAttribute("aria-hidden", "true");
  const name = make("span", { className: "name" }, `head ${head}`);
  const number = make("span", { className: "number" }, show(value));
  const button = make("button", { type: "button", className: "bar" }, name, track, number);
  button.dataset.head = head;
  button.setAttribute("aria-pressed", String(head === state.head));
  button.setAttribute("aria-label", `label head ${head}: ${show(value)} by ${state.norm}`);
  return button;
}

byId("bars").addEventListener("click", (event) => {
  const button = event.target.closest(".bar");
  if (!button) return;
  const head = Number(button.dataset.head);
  chooseHead(head === state.head ? null : head);
});
byId("more-heads").addEventListener("click", () => {
  state.allHeads = !state.allHeads;
  showBars();
});
byId("norm").addEventListener("change", (event) => {
  state.norm = event.target.value;
  nameBoxes();
  showBars();
  showHead();
  if (span()) say(describe(span()));
});
byId("order").addEventListener("change", (event) => {
  state.order = event.target.value;
  showBars();
});
