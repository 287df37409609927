// The data of the page, what is shown now, and how numbers are written.
const data = JSON.parse(document.getElementById("data").textContent);
const FEW = 10; // bars listed before more are asked for
const state = { sentence: 0, span: null, pinned: false }; // span: the constituent in the panel
// The panel beside the drawing shows either label heads (bars.js, head.js) or words (terms.js, word.js). Both kinds define
// showPanel(); letGo(), for Escape; behind(of), which describes the best of a constituent in a few words; and heat(), which
// returns null or what the words are shaded by.

const byId = (id) => document.getElementById(id);
const sentence = () => data.sentences[state.sentence];
const span = () => (state.span === null ? null : sentence().spans[state.span]);

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

// Write a number with about three digits.
function plain(value) {
  const size = Math.abs(value);
  if (value !== 0 && size < 0.0005) return minus(value.toExponential(1));
  return minus(value.toFixed(size >= 100 ? 1 : size >= 1 ? 2 : 3));
}

const range = (of) => (of.end - of.start === 1 ? `word ${of.end}` : `words ${of.start + 1} to ${of.end}`);

// The words of a constituent; of a long one, the first and the last.
function wordsOf(of) {
  const words = sentence().words.slice(of.start, of.end);
  return (words.length > 12 ? [...words.slice(0, 7), "\u2026", ...words.slice(-4)] : words).join(" ");
}

// "NP, words 1 to 2: the person, head word person; ..."
function describe(of) {
  return `${of.label}${folded(of) ? ", folded" : ""}, ${range(of)}: ${wordsOf(of)}${headWord(of)}${sureOf(of)}; ${behind(of)}${against(of)}`;
}

const sureOf = (of) => (of.probability === undefined ? "" : `, probability ${percent(of.probability)}`);
const headWord = (of) => (of.head ? `, head word ${sentence().words[of.head - 1]}` : "");
const capital = (text) => text[0].toUpperCase() + text.slice(1);

// Write the panel's first two lines. what: the things it lists. Returns false if no constituent is shown.
function showTitle(of, what) {
  byId("constituent").textContent = of ? `${of.label}${of.group ? " (a group, not a constituent)" : ""}: ${wordsOf(of)}` : "Point at a constituent";
  byId("about").textContent = of
    ? `${capital(range(of))}${headWord(of)}${sureOf(of)}${against(of)}. ${state.pinned ? "Pinned; press Esc to unpin it." : ""}`
    : sentence().spans.length
      ? `Its ${what} will be listed here. Click (or press Enter) to pin it; press Esc to unpin it.`
      : "This sentence has no constituents.";
  return Boolean(of);
}

// A line with a name, a bar around zero, and a number.
function bar(tag, { name, value, number, said }, low, high) {
  const across = (x) => (high > low ? (100 * (x - low)) / (high - low) : 0);
  const line = make("i", { className: value < 0 ? "below" : "" });
  line.style.left = `${across(Math.min(0, value))}%`;
  line.style.width = `${Math.abs(across(value) - across(0))}%`;
  const zero = make("b");
  zero.style.left = `${across(0)}%`;
  const track = make("span", { className: "track" }, line, zero);
  track.setAttribute("aria-hidden", "true");
  const names = make("span", { className: "name", title: name }, name);
  const item = make(tag, { className: "bar" }, names, track, make("span", { className: "number" }, number));
  if (tag === "button") item.type = "button";
  item.setAttribute("aria-label", said);
  return item;
}

const cells = (...texts) => make("tr", {}, ...texts.map((text) => make("td", {}, text)));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function against(of) {
  if (of.gold === "extra") return "; not in gold";
  return of.gold && of.gold.label ? `; gold has ${of.gold.label} there` : "";
}

const say = (text) => {
  byId("status").textContent = text;
};
