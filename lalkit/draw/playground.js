// The state of the page is its address: the form changes the address, and the page shows what the address asks for.
import { find, leastSure, offer, percent, say } from "./typing.js";

const form = find("form");
const asked = new URLSearchParams(location.search);

function item(text) {
  const element = document.createElement("li");
  element.textContent = text;
  return element;
}

const differs = ({ added, missing }) => [...added.map((name) => `+${name}`), ...missing.map((name) => `\u2212${name}`)].join("  ");

// The arcs of a structure that the first one does not have: "saw \u2192 with".
function arcs(tree, words) {
  const pairs = tree.added.map((arc) => arc.split("->").map(Number)).sort((a, b) => a[1] - b[1]);
  return pairs.map(([head, word]) => `${head ? words[head - 1] : "root"} \u2192 ${words[word - 1]}`).join(", ");
}

function link(text, changes) {
  const element = document.createElement("a");
  const address = new URLSearchParams(asked);
  for (const [name, value] of Object.entries(changes)) address.set(name, value);
  element.href = `?${address}`;
  element.textContent = text;
  return element;
}

// A link to the same question, with another of its structures.
function treeLink(tree, index, { number, words }) {
  const element = link(`${index + 1}: ${percent(Math.exp(tree.log_probability))} ${arcs(tree, words) || "the parse"}`, { tree: index + 1 });
  element.title = `best score of its trees ${tree.score.toFixed(2)}${differs(tree) && `. What differs from the parse: ${differs(tree)}`}`;
  if (index + 1 === number) element.setAttribute("aria-current", "true");
  const entry = item("");
  entry.append(element);
  return entry;
}

function facts({ trees, shown, price, changed, note }) {
  const unsure = leastSure(shown, shown.confidence.spans);
  const together = trees.reduce((sum, tree) => sum + Math.exp(tree.log_probability), 0);
  const among = price ? "among all trees, also those that do not obey, this one" : "this tree";
  const which = trees.length === 1 ? "This structure has" : `These ${trees.length} structures have`;
  const lines = [`${which} ${percent(together)} of the probability together; ${percent(Math.max(0, 1 - together))} is left. Each percent is that of its arcs, whatever the labels; ${among}, with its labels, has ${percent(shown.confidence.tree)}.${unsure && ` Least sure: ${unsure}.`}`];
  const spans = (asked.get("forbid") ?? "").match(/\*\(.*?\)/g);
  if (spans) lines.push(`Forbidden: a constituent over exactly these words, whatever its label: ${spans.join(" ")}.`);
  if (price) lines.push(`The constraints cost ${price.score.toFixed(2)} in score. A tree obeys them with the probability ${percent(Math.exp(price.log_probability))}.`);
  if (note) lines.unshift(`Careful: ${note}.`);
  if (changed) lines.push(`Without head ${asked.get("without")}, the best tree ${differs(changed) ? `changes: ${differs(changed)}` : "stays the same"}.`);
  return lines;
}

async function show() {
  const begun = Date.now();
  const clock = () => say(`Parsing … ${Math.round((Date.now() - begun) / 1000)} s`);
  clock();
  const ticking = setInterval(clock, 1000);
  const answer = await fetch(`parse?${asked}`).catch(() => null);
  clearInterval(ticking);
  if (!answer) return say("Python does not answer any more. Start it again.", true);
  if (!answer.ok) return say(await answer.text(), true);
  const data = await answer.json();
  offer(data.sentences, asked.get("sentence") ?? "1");
  find("facts").replaceChildren(...facts(data).map(item));
  find("trees").replaceChildren(...data.trees.map((tree, i) => treeLink(tree, i, data.shown)));
  say("The tree is being drawn.");
  find("explorer").addEventListener("load", () => say(""), { once: true });
  find("explorer").src = `explore?${asked}`;
  find("answer").hidden = false;
}

// Leave empty fields out of the address. The text as it was keeps its chosen sentence.
form.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value.trim() || (name === "form" && value === "raw")) formData.delete(name);
  if (asked.has("sentence") && formData.get("text") === asked.get("text")) formData.set("sentence", asked.get("sentence"));
});

// Another sentence of the text: constraints belong to one sentence.
find("sentence").addEventListener("change", ({ target }) => {
  for (const name of ["require", "forbid", "tree"]) asked.delete(name);
  location.search = link("", { sentence: target.value }).search;
});

// A constraint that was clicked in the explorer: {forbid: "*(2,4)"} or {require: "NP(2,4)"}.
window.addEventListener("message", ({ source, data }) => {
  if (source !== find("explorer").contentWindow || typeof data !== "object") return;
  for (const name of ["require", "forbid"]) {
    if (typeof data?.[name] !== "string") continue;
    form.elements[name].value = `${form.elements[name].value} ${data[name]}`.trim();
    form.requestSubmit();
  }
});

find("options").open = [...asked.keys()].some((name) => ["form", "require", "forbid", "without", "against", "k"].includes(name));
for (const [name, value] of asked) if (form.elements.namedItem(name)) form.elements[name].value = value;
if (asked.get("text")) show();
else find("text").focus();
