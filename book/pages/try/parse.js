// From the numbers of the network to a parsed sentence, and to what the explorer shows of it.
import { spanScores, termsOf } from "./chart.js";
import { decode } from "./decode.js";
import { probabilities } from "./sums.js";

const GROUP = 1; // the index of <H>

// output: the arrays of the network (see lalkit/export.py). parser: parser.json. Returns words, tags, heads, arcLabels, spans
// (with <H>), score and scores (of all labels over all spans).
export function parse(words, output, parser) {
  const n = words.length;
  const scores = spanScores(output, n);
  const { score, spans, heads } = decode(scores, output.arcs, n, parser.lam);
  const arcLabels = heads.map((head, d) => parser.arc_labels[bestArcLabel(output.arc_labels, d, head, n, parser)]);
  const size = parser.tags.length;
  const tags = words.map((_, d) => parser.tags[best(output.tags.subarray(d * size, (d + 1) * size))]);
  return { words, tags, heads, arcLabels, spans, score, scores };
}

// The first of the greatest.
const best = (row, allowed = () => true) => row.reduce((top, value, k) => (allowed(k) && (top < 0 || value > row[top]) ? k : top), -1);

// Only the arc of the root can have the root's label, and it must.
function bestArcLabel(scores, d, head, n, { arc_labels: { length }, root }) {
  const row = scores.subarray((d * (n + 1) + head) * length, (d * (n + 1) + head + 1) * length);
  return best(row, (k) => root === null || (k === root) === (head === 0));
}

// How sure the parser is: of each span of the tree, and of each arc, among all trees.
export function confidence({ scores, spans, heads }, output, parser) {
  const [ofLabels, ofArcs] = [parser.temperature].flat();
  const weights = [parser.lam / ofLabels, (1 - parser.lam) / (ofArcs ?? ofLabels)];
  const { spanOf, arcOf } = probabilities(scores, output.arcs, heads.length, weights);
  return { spans: spans.map(({ start, end, label }) => spanOf(start, end, label)), arcs: heads.map((head, d) => arcOf(d, head)) };
}

const rounded = (digits) => (value) => Number(value.toFixed(digits));
const [four, six] = [rounded(4), rounded(6)];

// The constituents with the parts of their scores, in the order of the page: `page` and `page_span` of lalkit/interpret.
// sure: as `confidence` gives it, or null.
export function explained(tree, output, parser, sure) {
  const n = tree.words.length;
  const shown = tree.spans.flatMap((span, i) => {
    if (span.label === GROUP) return [];
    const second = secondLabel(tree.scores, span, n, parser.labels.length);
    const readings = [span.label, ...(second > 0 ? [second] : [])].map((label) => reading(termsOf(output, n, span, label - 1), parser.labels[label]));
    return {
      start: span.start, end: span.end, label: parser.labels[span.label], head: span.head, score: four(readings[0].score), readings,
      then: withoutWords(output, n, span, parser.labels), ...(sure && { probability: four(sure.spans[i]) }),
    };
  });
  return inOrder(shown);
}

// The spans in pre-order, each with its parent (index or null) and its level (1: outermost).
function inOrder(spans) {
  const [ordered, open] = [[], []];
  for (const span of spans.sort((a, b) => a.start - b.start || b.end - a.end)) {
    while (open.length && ordered[open.at(-1)].end <= span.start) open.pop();
    ordered.push({ ...span, parent: open.at(-1) ?? null, level: open.length + 1 });
    open.push(ordered.length - 1);
  }
  return ordered;
}

const reading = ({ attention, evidence, value, boundary, score }, label) => ({
  label, score: six(score), attention: attention.map(six), evidence: evidence.map(six), value: value.map(six), rest: { boundary: six(boundary) },
});

function secondLabel(scores, { start, end, label }, n, size) {
  const cell = (start * (n + 1) + end) * size;
  return best(scores.subarray(cell, cell + size), (k) => k > GROUP && k !== label);
}

// The label that would come first without any evidence of a word, for each word of a span, and its score.
function withoutWords(output, n, span, labels) {
  const terms = labels.slice(2).map((_, k) => termsOf(output, n, span, k + 1));
  return terms[0].value.map((_, t) => {
    const left = terms.map(({ score, value }) => score - value[t]);
    const top = best(left);
    return [labels[top + 2], six(left[top])];
  });
}
