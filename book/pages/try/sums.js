// The exact probabilities of all parts of a joint tree: the two passes of lalkit/chart/sums.py, in logarithms throughout.
import { firstLabel } from "./decode.js";

const { exp, log, max } = Math;

// labelScores [n+1, n+1, L], arcScores [n, n+1]: as in `decode`; -Infinity forbids. weights: of labels and of arcs.
// Returns functions: spanOf(start, end, label), arcOf(dependent from 0, head from 1 or 0 for the root), and logZ.
export function probabilities(labelScores, arcScores, n, [ofLabels, ofArcs]) {
  const size = labelScores.length / (n + 1) ** 2;
  const { names, shares } = labelWeights(labelScores, n, size, ofLabels);
  const arcs = Float64Array.from(arcScores, (value, at) => {
    const itself = at % (n + 1) === Math.floor(at / (n + 1)) + 1;
    return itself || value === -Infinity ? -Infinity : value * ofArcs;
  });
  const cell = (i, j) => i * (n + 1) + j;
  const chart = inside(names, arcs, n, cell);
  if (!Number.isFinite(chart.logZ)) throw new Error("no joint tree is left, or the scores are too large to add up");
  const { spans, arcSums } = outside(chart, names, arcs, n, cell);
  return {
    logZ: chart.logZ,
    spanOf: (i, j, label) => Math.min(1, spans[cell(i, j)] * shares[cell(i, j) * size + label]),
    arcOf: (d, head) => Math.min(1, arcSums[d * (n + 1) + head]),
  };
}

// The logarithm of the weight of all labels of each span, and the share of each label in it.
function labelWeights(scores, n, size, weight) {
  const [names, shares] = [new Float64Array((n + 1) ** 2).fill(-Infinity), new Float64Array(scores.length)];
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j <= n; j++) {
      const cell = i * (n + 1) + j;
      const first = firstLabel(i, j, n);
      const value = (k) => (scores[cell * size + k] === -Infinity ? -Infinity : weight * scores[cell * size + k]);
      names[cell] = logSum(first, size, value);
      for (let k = first; k < size; k++) shares[cell * size + k] = part(1, value(k), names[cell]);
    }
  }
  return { names, shares };
}

const terms = []; // of the sum that is being computed

// The logarithm of the sum of e^term(k) over k in from..to-1.
function logSum(from, to, term) {
  let [top, total] = [-Infinity, 0];
  for (let k = from; k < to; k++) top = max(top, terms[k] = term(k));
  for (let k = from; top > -Infinity && k < to; k++) total += exp(terms[k] - top);
  return top + log(total || 1);
}

function logAdd(a, b) {
  const top = max(a, b);
  return top === -Infinity ? top : top + log(exp(a - top) + exp(b - top));
}

// The share of one term of a sum in the probability of the sum.
const part = (probability, term, sum) => (probability > 0 && term > -Infinity ? probability * exp(term - sum) : 0);

// The weights of a span as a dependent's or as a head's own part: it must have a label, or may. One word never must.
function weightsOf(names, i, j, n, cell) {
  const name = names[cell(i, j)];
  const optional = n === 1 ? name : logAdd(0, name);
  return [j - i === 1 ? optional : name, optional];
}

// bare[i, j, h]: all ways to build the span (i, j) with the head word h, without its label; later[i, j, h]: those that end with
// a part on the right of h. left, right[i, j, h]: the span as the left or the right part of a larger one with the head word h, which
// may be inside or outside. An own left part without a label must end on the right, so that each tree is built in one way.
function inside(names, arcs, n, cell) {
  const [bare, later, left, right] = [0, 0, 0, 0].map(() => new Float64Array((n + 1) ** 2 * n).fill(-Infinity));
  for (let j = 1; j <= n; j++) {
    for (let i = j - 1; i >= 0; i--) {
      const at = cell(i, j) * n;
      const [must, may] = weightsOf(names, i, j, n, cell);
      for (let h = i; h < j; h++) {
        const split = (k) => left[cell(i, k) * n + h] + right[cell(k, j) * n + h];
        later[at + h] = logSum(h + 1, j, split);
        bare[at + h] = j - i === 1 ? 0 : logAdd(logSum(i + 1, h + 1, split), later[at + h]);
        right[at + h] = bare[at + h] + may;
        left[at + h] = logAdd(bare[at + h] + must, later[at + h]);
      }
      for (let h = 0; h < n; h++) {
        if (h < i || h >= j) (h < i ? right : left)[at + h] = logSum(i, j, (d) => bare[at + d] + must + arcs[d * (n + 1) + h + 1]);
      }
    }
  }
  const whole = cell(0, n) * n;
  const [must] = weightsOf(names, 0, n, n, cell);
  return { bare, later, left, right, logZ: logSum(0, n, (h) => bare[whole + h] + must + arcs[h * (n + 1)]) };
}

// spans: the probability of each labelled span, [n+1, n+1]. arcSums: of each arc, [n, n+1].
function outside({ bare, later, left, right, logZ }, names, arcs, n, cell) {
  const [ofLeft, ofRight] = [0, 0].map(() => new Float64Array((n + 1) ** 2 * n)); // the probability of each entry
  const [spans, arcSums] = [new Float64Array((n + 1) ** 2), new Float64Array(n * (n + 1))];
  for (let i = 0; i < n; i++) {
    for (let j = n; j > i; j--) {
      const at = cell(i, j) * n;
      const [must, may] = weightsOf(names, i, j, n, cell);
      const named = (weight) => part(1, names[cell(i, j)], weight);
      const [here, after] = [new Float64Array(n), new Float64Array(n)];
      const depends = (d, head, probability, sum) => {
        const share = part(probability, bare[at + d] + must + arcs[d * (n + 1) + head], sum);
        here[d] += share;
        arcSums[d * (n + 1) + head] += share;
        spans[cell(i, j)] += share * named(must);
      };
      for (let h = 0; h < n; h++) {
        if (h >= i && h < j) {
          const own = part(ofLeft[at + h], bare[at + h] + must, left[at + h]);
          here[h] += own + ofRight[at + h];
          after[h] = part(ofLeft[at + h], later[at + h], left[at + h]);
          spans[cell(i, j)] += own * named(must) + ofRight[at + h] * named(may);
          if (j - i === n) depends(h, 0, 1, logZ);
        } else for (let d = i; d < j; d++) depends(d, h + 1, (h < i ? ofRight : ofLeft)[at + h], (h < i ? right : left)[at + h]);
      }
      for (let h = i; h < j; h++) {
        for (let k = i + 1; k < j; k++) {
          const a = cell(i, k) * n + h;
          const b = cell(k, j) * n + h;
          const share = part(here[h], left[a] + right[b], bare[at + h]) + (k > h ? part(after[h], left[a] + right[b], later[at + h]) : 0);
          ofLeft[a] += share;
          ofRight[b] += share;
        }
      }
    }
  }
  return { spans, arcSums };
}
