// What the tests ask of the page's own files (test_page_in_the_book.py copies this file beside them).
import { load, run } from "./network.js";
import { confidence, explained, parse } from "./parse.js";
import { wordsOf } from "./tokens.js";
import { decode } from "./decode.js";
import { probabilities } from "./sums.js";

export async function parses(texts) {
  const network = await load(() => {});
  const { parser, pattern } = network;
  const results = [];
  for (const text of texts) {
    const output = await run(network, wordsOf(text, pattern));
    const tree = parse(wordsOf(text, pattern), output, parser);
    const sure = confidence(tree, output, parser);
    const spans = explained(tree, output, parser, sure);
    const named = tree.spans.map(({ start, end, label, head }) => [start, end, parser.labels[label], head]);
    results.push({ tree: [tree.words, named, tree.heads, tree.arcLabels, tree.tags], sure, spans });
  }
  return results;
}

const attempt = (work) => {
  try {
    return work();
  } catch {
    return null;
  }
};

// null stands for minus infinity, which JSON does not have.
export const charts = (all) => all.map(([labels, arcs, lam]) => {
  const n = arcs.length;
  const [a, b] = [labels, arcs].map((numbers) => Float32Array.from(numbers.flat(2), (number) => number ?? -Infinity));
  const tree = attempt(() => decode(a, b, n, lam));
  const sums = attempt(() => probabilities(a, b, n, [lam, 1 - lam]));
  return {
    tree: tree && [tree.score, tree.spans.map((span) => Object.values(span)), tree.heads],
    sums: sums && [sums.logZ, ...Array.from(b, (_, at) => sums.arcOf(Math.floor(at / (n + 1)), at % (n + 1)))],
  };
});
