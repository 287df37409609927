// The label heads behind the constituent, as bars around a zero line.
// head: the label head whose attention is shown.
// word: the column of the word whose label heads are listed.
// A page that compares with another label begins with the differences: a norm of its own. Their last part is that of no head.
const AGAINST = `against ${data.against}`;
if (data.against) {
  data.norm = AGAINST;
  data.norms = { [AGAINST]: `what the head adds to the score of the label, less what it adds to that of ${data.against}`, ...data.norms };
  for (const { spans } of data.sentences) for (const of of spans) of.values[AGAINST] = of.against?.slice(0, -1) ?? of.values.exact.map(() => 0);
}
Object.assign(state, { head: null, norm: data.norm, order: "value", word: null, allHeads: false, allLabels: false });
const kept = { head: (text) => wholeFrom(0, sentence().attention.length)(text), norm: oneOf(Object.keys(data.norms)), word: (text) => wholeFrom(1, sentence().words.length + 1)(text) };
const values = (of) => of.values[state.norm];

// A value by the chosen norm: shares in percent.
const show = (value) => (state.norm === "share" || state.norm === "softmax" ? percent(value) : plain(value));

// The label heads in the chosen order. Among equal ones the lowest number comes first.
function ranked(of) {
  const heads = values(of).map((value, head) => ({ head, value }));
  const key = { value: (x) => -x.value, size: (x) => -Math.abs(x.value), number: (x) => x.head }[state.order];
  return heads.sort((a, b) => key(a) - key(b) || a.head - b.head);
}

// "top label head 12 with 34.2 % by share"
function behind(of) {
  const all = values(of);
  const head = all.indexOf(all.reduce((a, b) => Math.max(a, b)));
  return `top label head ${head} with ${show(all[head])} by ${state.norm}`;
}

function showPanel() {
  byId("norm").value = state.norm;
  showBars();
  showHead();
  showLooking();
  markHeat();
}

function showBars() {
  const of = span();
  byId("norm-says").textContent = `${state.norm}: ${data.norms[state.norm]}.`;
  byId("bars").replaceChildren();
  byId("more-heads").hidden = true;
  if (!showTitle(of, "label heads")) return;
  const heads = ranked(of);
  const scored = state.norm === "exact" && of.score !== undefined; // only this norm is a part of the score
  const all = sentence().spans.flatMap((one) => (one.values?.[state.norm] ? values(one) : [])); // one scale for all constituents
  const whole = scored ? sentence().spans.map(({ score }) => score ?? 0) : []; // so that the bars show how little one head is of a score
  const ends = [0, ...all, ...whole, ...(state.norm === AGAINST && of.against ? [...of.against, sum(of.against)] : [])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const listed = state.allHeads ? heads : heads.slice(0, FEW);
  byId("bars").append(...(scored ? scoreLine(of.label, of.score) : []));
  if (state.norm === AGAINST && of.against) {
    const [rest] = of.against.slice(-1);
    byId("bars").append(...scoreLine(`${of.label} minus ${data.against}`, sum(of.against)));
    byId("bars").append(make("li", {}, bar("div", { name: "no head", value: rest, number: show(rest), spoken: `no head: ${show(rest)}` }, low, high)));
  }
  byId("bars").append(...listed.map((item) => make("li", {}, headBar(item, low, high))));
  byId("more-heads").hidden = heads.length <= FEW;
  byId("more-heads").textContent = state.allHeads ? `Show the first ${FEW} only` : `Show all ${heads.length} label heads`;
}

function headBar({ head, value }, low, high) {
  const spoken = `label head ${head}: ${show(value)} by ${state.norm}`;
  const button = bar("button", { name: `head ${head}`, value, number: show(value), spoken }, low, high);
  button.dataset.head = head;
  button.setAttribute("aria-pressed", String(head === state.head));
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
for (const norm of Object.keys(data.norms)) byId("norm").append(make("option", { value: norm }, norm));
byId("norm").value = state.norm;
byId("order").value = state.order; // a browser may remember what was chosen before a reload
byId("norm").addEventListener("change", (event) => {
  state.norm = event.target.value;
  nameBoxes();
  showBars();
  showHead();
  page.remember();
  if (span()) say(describe(span()));
});
byId("order").addEventListener("change", (event) => {
  state.order = event.target.value;
  showBars();
});
