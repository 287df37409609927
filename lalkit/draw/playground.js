"use strict";
// The state of the page is its address: the form changes the address, and the page shows what the address asks for.
const byId = (id) => document.getElementById(id);
const form = byId("form");
const asked = new URLSearchParams(location.search);
const percent = (value) => `${(100 * value).toPrecision(3)} %`;

function say(text, problem = false) {
  byId("status").textContent = text;
  byId("status").className = problem ? "problem" : "";
  byId("status").hidden = !text;
}

function item(text) {
  const element = document.createElement("li");
  element.textContent = text;
  return element;
}

const plus = (items) => items.map((name) => `+${name}`);
const minus = (items) => items.map((name) => `\u2212${name}`);
const differs = ({ added, missing }) => [...plus(added), ...minus(missing)].join("  ");

// A link to the same question, with another of its trees.
function treeLink(tree, index, shown) {
  const address = new URLSearchParams(asked);
  address.set("tree", index + 1);
  const link = document.createElement("a");
  link.href = `?${address}`;
  link.textContent = `${index + 1}: ${percent(Math.exp(tree.log_probability))} ${differs(tree)}`;
  link.title = `score ${tree.score.toFixed(2)}. What differs from the first tree: + is new, \u2212 is missing`;
  if (index + 1 === shown) link.setAttribute("aria-current", "true");
  const entry = item("");
  entry.append(link);
  return entry;
}

// The constituents of the tree that are least probable.
function leastSure({ spans, confidence }) {
  const rows = spans.map((span, i) => [confidence.spans[i], `${span.label}(${span.start + 1},${span.end})`]);
  return rows.filter(([p, name]) => p < 0.9 && !name.startsWith("<H>")).sort((a, b) => a[0] - b[0]).slice(0, 3).map(([p, name]) => `${name} ${percent(p)}`);
}

function facts({ shown, price, changed }) {
  const unsure = leastSure(shown);
  const among = price ? "Among all trees, also those that do not obey, this one" : "This tree";
  const lines = [`${among} has the probability ${percent(shown.confidence.tree)}.${unsure.length ? ` Least sure: ${unsure.join(", ")}.` : ""}`];
  if (price) lines.push(`The constraints cost ${price.score.toFixed(2)} in score. A tree obeys them with the probability ${percent(Math.exp(price.log_probability))}.`);
  if (changed) lines.push(`Left: all heads. Right: without ${asked.get("without")}. The best tree ${differs(changed) ? `changes: ${differs(changed)}` : "stays the same"}.`);
  return lines;
}

async function show() {
  say("Parsing …");
  const answer = await fetch(`parse?${asked}`).catch(() => null);
  if (!answer) return say("Python does not answer any more. Start it again.", true);
  if (!answer.ok) return say(await answer.text(), true);
  const data = await answer.json();
  byId("facts").replaceChildren(...facts(data).map(item));
  byId("trees").replaceChildren(...data.trees.map((tree, i) => treeLink(tree, i, data.shown.number)));
  say("The tree is being drawn.");
  byId("explorer").addEventListener("load", () => say(""), { once: true });
  byId("explorer").src = `explore?${asked}`;
  byId("answer").hidden = false;
}

// Leave empty fields out of the address.
form.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value.trim() || (name === "form" && value === "raw")) formData.delete(name);
});

// A constraint that was clicked in the explorer: {forbid: "NP(2,4)"} or {require: "NP(2,4)"}.
window.addEventListener("message", ({ source, data }) => {
  if (source !== byId("explorer").contentWindow || typeof data !== "object") return;
  for (const name of ["require", "forbid"]) {
    if (typeof data?.[name] !== "string") continue;
    form.elements[name].value = `${form.elements[name].value} ${data[name]}`.trim();
    form.requestSubmit();
  }
});

for (const [name, value] of asked) if (form.elements.namedItem(name)) form.elements[name].value = value;
if (asked.get("text")) show();
else byId("text").focus();
