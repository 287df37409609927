// What is shown now, what it is shown from, and how numbers are written.
const data = JSON.parse(document.getElementById("data").textContent);
const FEW = 10; // label heads listed before more are asked for
const state = {
  sentence: 0,
  span: null, // the constituent in the panel
  pinned: false,
  head: null, // the label head whose attention is shown
  norm: data.norm,
  order: "value",
  allHeads: false,
  allLabels: false,
};

const byId = (id) => document.getElementById(id);
const sentence = () => data.sentences[state.sentence];
const span = () => (state.span === null ? null : sentence().spans[state.span]);
const values = (of) => of.values[state.norm];

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

const minus = (text) => text.replace("-", "\u2212");
const percent = (value) => {
  const digits = value !== 0 && Math.abs(value) < 0.001 ? 3 : 1;
  return `${minus((100 * value).toFixed(digits))}\u00a0%`;
};

// A value by the chosen norm: shares in percent, others with about three digits.
function show(value) {
  if (state.norm === "share" || state.norm === "softmax") return percent(value);
  const size = Math.abs(value);
  if (value !== 0 && size < 0.0005) return minus(value.toExponential(1));
  return minus(value.toFixed(size >= 100 ? 1 : size >= 1 ? 2 : 3));
}

// Label heads, first the one to be listed first; of equals, the lowest number.
function ranked(of) {
  const found = values(of).map((value, head) => ({ head, value }));
  const key = { value: (x) => -x.value, size: (x) => -Math.abs(x.value), number: (x) => x.head }[state.order];
  return found.sort((a, b) => key(a) - key(b) || a.head - b.head);
}

function top(of) {
  const found = values(of);
  return found.indexOf(found.reduce((a, b) => Math.max(a, b)));
}

const range = (of) => (of.end - of.start === 1 ? `word ${of.end}` : `words ${of.start + 1} to ${of.end}`);

// The words of a constituent; of a long one, the first and the last.
function wordsOf(of) {
  const words = sentence().words.slice(of.start, of.end);
  return (words.length > 12 ? [...words.slice(0, 7), "\u2026", ...words.slice(-4)] : words).join(" ");
}

// "NP, words 1 to 2: the person, head word person; top label head 12 with 34.2 %"
function describe(of) {
  const word = of.head ? `, head word ${sentence().words[of.head - 1]}` : "";
  const head = top(of);
  const best = `top label head ${head} with ${show(values(of)[head])} by ${state.norm}`;
  return `${of.label}, ${range(of)}: ${wordsOf(of)}${word}; ${best}${against(of)}`;
}

function against(of) {
  if (of.gold === "extra") return "; not in gold";
  return of.gold && of.gold.label ? `; gold has ${of.gold.label} there` : "";
}

const say = (text) => {
  byId("status").textContent = text;
};
