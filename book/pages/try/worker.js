// Text in, parses out, beside the page, so that the page never stands still.
import { load, Problem, run } from "./network.js";
import { confidence, explained, parse } from "./parse.js";
import { isChinese, sentencesOf } from "./tokens.js";
import { unlearned } from "./wordpiece.js";

const MOST_WORDS = 150;
let network = null;

self.addEventListener("message", async ({ data }) => {
  try {
    network ??= load((loaded, whole) => self.postMessage({ loaded, whole }));
    self.postMessage({ number: data.number, answer: await answer(await network, data) });
  } catch (error) {
    if (!(error instanceof Problem)) console.error(error);
    const text = error instanceof Problem ? error.message : `This is an error of the page itself: ${error.message}`;
    self.postMessage({ number: data.number, problem: text });
  }
});

// text: any; chosen: the number of a sentence in it, from 1.
async function answer(network, { text, chosen }) {
  const { parser, pattern } = network;
  if (isChinese(text)) throw new Problem("Chinese is written without spaces, and this parser reads English.");
  const sentences = sentencesOf(text.toWellFormed?.() ?? text, pattern);
  const words = sentences[chosen - 1] ?? sentences[0];
  if (!words) throw new Problem("There is nothing to parse: type a sentence.");
  if (words.length > MOST_WORDS) throw new Problem(`This sentence has ${words.length} words; the page parses at most ${MOST_WORDS}. Shorten it, or use lalkit in Python.`);
  const output = await run(network, words);
  const tree = parse(words, output, parser);
  const sure = confidence(tree, output, parser);
  const spans = explained(tree, output, parser, sure);
  const { tags, heads, arcLabels } = tree;
  const shown = {
    id: "", words, tags, heads, arc_labels: arcLabels, arc_probabilities: sure.arcs, spans: spans.map((span) => ({ ...span, gold: null })),
    attention: [], comparison: null,
  };
  return {
    sentences: sentences.map((one) => one.join(" ")), chosen: sentences.indexOf(words) + 1, sure, strange: unlearned(words, network.table, parser),
    tree: { ...tree, scores: undefined, spans: tree.spans.map((span) => ({ ...span, label: parser.labels[span.label] })) },
    data: { framed: true, panes: [{ kind: "terms", model: parser.name, other: "gold", boundary: "full", sentences: [shown] }] },
  };
}
