// What the pages share on which sentences are typed: the playground, and the page in the book.
export const find = (id) => document.getElementById(id);
export const percent = (value) => (value && value < 1e-4 ? "< 0.01 %" : `${(100 * value).toPrecision(3)} %`);

export function say(text, problem = false) {
  find("status").textContent = text;
  find("status").className = problem ? "problem" : "";
  find("status").hidden = !text;
}

// The sentences of the text, to choose one.
export function offer(sentences, chosen) {
  find("sentence").replaceChildren(...sentences.map((text, i) => new Option(`${i + 1} of ${sentences.length}: ${text}`, i + 1)));
  find("sentence").value = chosen;
  find("choose").hidden = sentences.length < 2;
}

// The constituents of a tree that are least probable, as text. probabilities: of all its spans.
export function leastSure({ spans, words }, probabilities) {
  const text = ({ start, end }) => (end - start > 6 ? [...words.slice(start, start + 3), "…", ...words.slice(end - 2, end)] : words.slice(start, end)).join(" ");
  const rows = spans.map((span, i) => [probabilities[i], `${span.label} “${text(span)}”`]).filter(([p, name]) => p < 0.9 && !name.startsWith("<H>"));
  return rows.sort((a, b) => a[0] - b[0]).slice(0, 3).map(([p, name]) => `${name} ${percent(p)}`).join(", ");
}
