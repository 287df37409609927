// The terms of a constituent's score as bars: for every word its attention times its evidence, and what the edges add.
// reading: 0 for the parse's own label, 1 for the label that comes second or is compared, 2 for the difference between the two.
// word: the word whose evidence is taken out.
Object.assign(state, { reading: data.against ? 2 : 0, order: "size", shading: "value", word: null, allTerms: false });
const kept = { reading: wholeFrom(0, 3), word: (text) => wholeFrom(1, sentence().words.length + 1)(text), shading: oneOf(["value", "attention"]) };
const EDGES = { first: "first word", last: "last word", constant: "constant", boundary: "boundaries" };
const BOUNDARY = {
  full: "The boundaries add one number, which a scorer of fenceposts computes. The page cannot show what is behind it.",
  glass: "The terms add up to the score: those of the words, those of the first and the last word as boundaries, and the label's constant.",
};
const chosenReading = (of) => Math.min(state.reading, of.readings.length === 1 ? 0 : 2);

// The reading that is listed: label, score, words (position from 1, attention, evidence, value) and edges (kind, value).
function reading(of) {
  const [own, second] = of.readings;
  const which = chosenReading(of);
  if (which < 2) return unfold(of, of.readings[which]);
  const [a, b] = [unfold(of, own), unfold(of, second)];
  const less = (first, other) => ({ ...first, attention: null, evidence: null, value: first.value - other.value });
  return {
    label: `${own.label} minus ${second.label}`,
    score: own.score - second.score,
    words: a.words.map((word, i) => less(word, b.words[i])),
    edges: a.edges.map((edge, i) => less(edge, b.edges[i])),
  };
}

function unfold(of, { label, score, attention, evidence, value, rest }) {
  const words = value.map((_, i) => ({
    position: of.start + i + 1, attention: attention[i], evidence: evidence[i], value: value[i],
  }));
  return { label, score, words, edges: Object.entries(rest).map(([kind, of]) => ({ kind, value: of })) };
}

const signed = (value) => (value > 0 ? `+${plain(value)}` : plain(value));
const wordAt = (position) => sentence().words[position - 1];

// "score 4.21, most by bridge (+2.50); S comes second with 1.03"
function behind(of) {
  const { words, score } = unfold(of, of.readings[0]);
  const best = words.reduce((a, b) => (Math.abs(b.value) > Math.abs(a.value) ? b : a));
  return `score ${plain(score)}, most by ${wordAt(best.position)} (${signed(best.value)})${runnerUp(of)}`;
}

const compared = (of) => data.against && of.label !== data.against;
const runnerUp = (of) => (of.readings[1] ? `; ${of.readings[1].label} ${compared(of) ? "would score" : "comes second with"} ${plain(of.readings[1].score)}` : "");

function showPanel() {
  const of = span();
  for (const id of ["heat-legend", "terms"]) byId(id).hidden = !of;
  byId("more-terms").hidden = true;
  byId("bars").replaceChildren();
  byId("scores").textContent = of ? `${of.label} scores ${plain(of.readings[0].score)}${runnerUp(of)}.` : "";
  byId("terms-say").textContent = BOUNDARY[data.boundary];
  if (showTitle(of, "words")) showTerms(of);
  markHeat();
  showWord();
}

function showTerms(of) {
  byId("reading").replaceChildren(...choices(of).map((text, value) => make("option", { value }, text)));
  byId("reading").value = chosenReading(of);
  const { words, edges, label, score } = reading(of);
  const all = [...words, ...edges];
  const ends = [0, score, ...all.map((term) => term.value)];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const terms = state.order === "size" ? [...all].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)) : all;
  const listed = state.allTerms ? terms : terms.slice(0, FEW);
  byId("bars").append(...scoreLine(label, score), ...listed.map((term) => make("li", {}, termBar(of, term, low, high))));
  byId("more-terms").hidden = terms.length <= FEW;
  byId("more-terms").textContent = state.allTerms ? `Show the first ${FEW} only` : `Show all ${terms.length} terms`;
  const whole = [sum(words.map((term) => term.value)), sum(edges.map((term) => term.value))];
  byId("terms-say").textContent = `${label}: the words add ${signed(whole[0])}, the boundaries ${signed(whole[1])}, together ${plain(score)}. ${BOUNDARY[data.boundary]}`;
  byId("terms").querySelector("tbody").replaceChildren(...all.map((term) => termRow(of, term)));
}

function choices(of) {
  const [own, second] = of.readings.map((one) => one.label);
  return second ? [own, compared(of) ? second : `${second}, the second`, `${own} minus ${second}`] : [own];
}

function nameOf(of, term) {
  if (term.position) return wordAt(term.position);
  const edge = { first: of.start + 1, last: of.end }[term.kind];
  return edge ? `${EDGES[term.kind]}: ${wordAt(edge)}` : EDGES[term.kind];
}

function termBar(of, term, low, high) {
  const name = nameOf(of, term);
  const more = term.attention === null || term.attention === undefined ? ""
    : `, ${percent(term.attention)} of the attention, evidence ${signed(term.evidence)}`;
  const spoken = `${term.position ? `word ${term.position}, ${name}` : name}: adds ${signed(term.value)}${more}`;
  const line = bar(term.position ? "button" : "div", { name, value: term.value, number: signed(term.value), spoken }, low, high);
  if (term.position) {
    line.dataset.word = term.position;
    line.title = spoken;
    line.setAttribute("aria-pressed", String(term.position === state.word));
  } else line.classList.add("edge");
  return line;
}

function termRow(of, term) {
  const numbers = [term.attention, term.evidence].map((value, i) => value === null || value === undefined ? "" : i ? signed(value) : percent(value));
  return cells(term.position ?? "edge", nameOf(of, term), ...numbers, signed(term.value));
}

// Shade the words of the constituent by what they add, or by attention. The numbers are percent of the sum over its words.
function heat() {
  const of = span();
  if (!of) return null;
  const { words, label } = reading(of);
  const byAttention = state.shading === "attention" && chosenReading(of) < 2;
  const values = words.map((term) => (byAttention ? term.attention : term.value));
  const most = Math.max(...values.map(Math.abs)) || 1;
  const size = sum(values.map(Math.abs)) || 1;
  const at = (column) => values[column - 1 - of.start];
  byId("heat-says").textContent = byAttention
    ? `Shade and numbers on the words: percent of the attention of the label head of ${label}.`
    : `Shade on the words: what each word adds to ${label} (blue) or takes from it (orange). Numbers: each word's percent of everything that words add or take.`;
  return {
    part: (column) => at(column) / most,
    tip: (column) => (byAttention ? `${percent(at(column))} of the attention` : `${at(column) < 0 ? "takes" : "adds"} ${plain(Math.abs(at(column)))}`),
    number: (column) => (at(column) === undefined ? null : Math.round((100 * at(column)) / size) || ""),
  };
}

byId("order").value = state.order; // a browser may remember what was chosen before a reload
byId("shading").value = state.shading;
for (const [id, key, read] of [["reading", "reading", Number], ["order", "order", String], ["shading", "shading", String]]) {
  byId(id).addEventListener("change", (event) => {
    state[key] = read(event.target.value);
    showPanel();
    page.remember();
  });
}
byId("more-terms").addEventListener("click", () => {
  state.allTerms = !state.allTerms;
  showPanel();
});
