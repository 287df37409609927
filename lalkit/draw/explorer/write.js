// What all panes of the page share: how elements and numbers are written, and what is shown in all of them.
const data = JSON.parse(document.getElementById("data").textContent);
const FEW = 10; // bars listed before more are asked for
const READABLE = { small: 10.5, large: 18, wide: 8 }; // the smallest font of words, in pixels; wide: without a panel beside them
// sentence: its place; folded: constituents by their places, "start-end"; least: the slider's probability, in percent
const shown = { sentence: 0, folded: new Set(), least: 0 };

const find = (id) => document.getElementById(id);
const constrain = find("constrain"); // it moves into the panel that is shown

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

const { namespaceURI } = make("template", { innerHTML: "<svg>" }).content.firstChild;
function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
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

// A line with a name, a bar around zero, and a number.
function bar(tag, { name, value, number, spoken }, low, high) {
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
  item.setAttribute("aria-label", spoken);
  return item;
}

// A bar in a list that can be clicked.
function choice(name, value, number, [low, high], chosen) {
  const button = bar("button", { name, value, number, spoken: `${name}: ${number}` }, low, high);
  button.addEventListener("click", chosen);
  return make("li", {}, button);
}

const cells = (...texts) => make("tr", {}, ...texts.map((text) => make("td", {}, text)));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

const say = (text) => {
  find("status").textContent = text;
};

const numbers = (text) => text.match(/-?[\d.]+/g).map(Number);

// The score of a constituent, above the bars of its parts, which have one scale with it.
const scoreLine = (label, score) => [make("li", { className: "score" }, `Score of ${label}: ${plain(score)}`)];

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const wholeFrom = (low, high) => (text) => (/^\d{1,6}$/.test(text) && Number(text) >= low && Number(text) < high ? Number(text) : undefined);
const oneOf = (names) => (text) => (names.includes(text) ? text : undefined);
