// The exact probabilities of all parts of a joint tree: the two passes of lalkit/chart/sums.py, in float64.
import { firstLabel } from "./decode.js";

const [TINY, LOWEST] = [1e-200, -1e300];
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
  const state = { n, names, arcs, closed: n === 1, row: (i, j) => (i * (n + 1) + j) * n, cell: (i, j) => i * (n + 1) + j };
  Object.assign(state, inside(state));
  if (!Number.isFinite(state.logZ)) throw new Error("no joint tree is left, or the scores are too large to add up");
  const { spans, arcSums } = outside(state);
  return {
    logZ: state.logZ,
    spanOf: (i, j, label) => Math.min(1, spans[state.cell(i, j)] * shares[state.cell(i, j) * size + label]),
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
      let [top, total] = [LOWEST, 0];
      for (let k = first; k < size; k++) top = max(top, value(k));
      for (let k = first; k < size; k++) total += shares[cell * size + k] = exp(value(k) - top);
      names[cell] = top + log(total);
      for (let k = first; k < size; k++) shares[cell * size + k] /= max(total, TINY);
    }
  }
  return { names, shares };
}

function logAdd(a, b) {
  const [high, low] = [max(a, b), Math.min(a, b)];
  return low === -Infinity ? high : high + Math.log1p(exp(low - high));
}

// The logarithm of the sum of e^term(k) over k in from..to-1.
function logSum(from, to, term) {
  let [top, total] = [-Infinity, 0];
  for (let k = from; k < to; k++) top = max(top, term(k));
  for (let k = from; k < to; k++) total += top > -Infinity ? exp(term(k) - top) : 0;
  return total > 0 ? top + log(total) : top;
}

// Logarithms and a number of a span: L / U, N / L, the labels' part of N, and the other part of L.
function choice({ names, closed, cell }, i, j) {
  const name = names[cell(i, j)];
  if (closed) return [name, 0, 0, 0];
  const both = logAdd(0, name);
  return j - i === 1 ? [both, 0, name - both, 0] : [both, name - both, 0, exp(-both)];
}

function inside(state) {
  const { n, arcs, row, cell } = state;
  const [chart, scaled] = [new Float64Array((n + 1) ** 2 * n), new Float64Array((n + 1) ** 2 * n)];
  const top = new Float64Array((n + 1) ** 2).fill(LOWEST);
  const [right, both, attached] = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  let highestArc = LOWEST;
  arcs.forEach((value, at) => { if (at % (n + 1)) highestArc = max(highestArc, value); });
  const arcWeights = arcs.map((value, at) => (at % (n + 1) ? exp(value - highestArc) : 0));
  for (let j = 1; j <= n; j++) {
    for (let i = j - 1; i >= 0; i--) {
      const scale = cell(j, i);
      for (let k = i + 1; k < j; k++) top[scale] = max(top[scale], top[cell(i, k)] + top[cell(k, j)]);
      both.fill(0, i, j);
      right.fill(0, i, j);
      for (let k = j - 1; k > i; k--) {
        const factor = exp(top[cell(i, k)] + top[cell(k, j)] - top[scale]);
        const [a, b] = [row(i, k), row(j, k)];
        for (let h = i; h < j; h++) both[h] += factor * (scaled[a + h] * scaled[b + h]);
        right[k - 1] = both[k - 1]; // all k > h; smaller ones are still to come
      }
      if (j - i === 1) [top[scale], both[i]] = [0, 1];

      const [over, child, , rest] = choice(state, i, j);
      const [after, before] = [row(i, j), row(j, i)];
      const splits = (h, first) => logSum(first, j, (k) => chart[row(i, k) + h] + chart[row(j, k) + h]);
      let highest = LOWEST;
      for (let h = i; h < j; h++) {
        const exact = both[h] > TINY;
        const content = exact ? top[scale] + log(both[h]) : splits(h, i + 1);
        chart[before + h] = content + over;
        chart[after + h] = content + over + child;
        const share = exact ? exp(child) + rest * (right[h] / both[h]) : 0;
        if (rest > 0 && share > TINY) chart[after + h] = chart[before + h] + log(share);
        else if (rest > 0) chart[after + h] = logAdd(chart[after + h], splits(h, h + 1));
        highest = max(highest, chart[before + h]);
      }

      attached.fill(0);
      for (let d = i; d < j; d++) {
        const factor = exp(chart[before + d] - highest);
        for (let h = 0; h < n; h++) attached[h] += factor * arcWeights[d * (n + 1) + h + 1];
      }
      const ground = highest + child + highestArc;
      for (let h = 0; h < n; h++) {
        if (h >= i && h < j) continue;
        const far = () => child + logSum(i, j, (d) => chart[before + d] + arcs[d * (n + 1) + h + 1]);
        const value = attached[h] > TINY ? ground + log(attached[h]) : far();
        chart[(h < i ? before : after) + h] = value;
        highest = max(highest, value);
      }
      top[cell(i, j)] = highest;
      for (let h = 0; h < j; h++) scaled[before + h] = exp(chart[before + h] - highest);
      for (let h = i; h < n; h++) scaled[after + h] = exp(chart[after + h] - highest);
    }
  }
  const logZ = logSum(0, n, (h) => chart[row(n, 0) + h] + arcs[h * (n + 1)]) + choice(state, 0, n)[1];
  return { chart, scaled, top, highestArc, arcWeights, logZ };
}

// spans: the probability of each labelled span, [n+1, n+1]. arcSums: of each arc, [n, n+1].
function outside(state) {
  const { n, arcs, row, cell, chart, scaled, top, highestArc, arcWeights, logZ } = state;
  const shares = new Float64Array((n + 1) ** 2 * n); // the probability of each entry of the chart
  const spans = new Float64Array((n + 1) ** 2);
  const arcSums = new Float64Array(n * (n + 1));
  const slopeSums = new Float64Array(n * (n + 1));
  const [here, slopes, toLeft, toRight] = [0, 0, 0, 0].map(() => new Float64Array(n));
  const part = (probability, logarithm) => (probability > 0 ? probability * exp(logarithm) : 0);
  for (let i = 0; i < n; i++) {
    for (let j = n; j > i; j--) {
      const [over, child, name, rest] = choice(state, i, j);
      const [labelled, arcScale] = [exp(child), exp(child + highestArc)];
      const [a, b, peak] = [row(i, j), row(j, i), top[cell(i, j)]];
      const [leftScale, rightScale] = [exp(top[cell(j, i)] + over - peak), exp(top[cell(j, i)] - peak)];
      here.fill(0, i, j);
      slopes.fill(0);
      for (let h = 0; h < n; h++) {
        const at = (h < i ? b : a) + h;
        const beyond = h < i || h >= j;
        if (j - i === n) here[h] = arcSums[h * (n + 1)] = exp(chart[row(n, 0) + h] + child + arcs[h * (n + 1)] - logZ);
        else if (beyond && scaled[at] > max(1, arcScale) * TINY) slopes[h] = shares[at] * (arcScale / scaled[at]);
        else if (beyond && shares[at] > 0) {
          for (let d = i; d < j; d++) {
            const arc = d * (n + 1) + h + 1;
            const probability = part(shares[at], chart[b + d] + child + arcs[arc] - chart[at]);
            here[d] += probability;
            arcSums[arc] += probability;
          }
        }
      }
      for (let d = i; d < j; d++) {
        const arc = d * (n + 1) + 1;
        let total = 0;
        for (let h = 0; h < n; h++) {
          total += arcWeights[arc + h] * slopes[h];
          slopeSums[arc + h] += scaled[b + d] * slopes[h];
        }
        here[d] += scaled[b + d] * total;
      }

      for (let h = i; h < j; h++) {
        const [after, before, both] = [shares[a + h], shares[b + h], scaled[b + h]];
        const first = after > 0 ? scaled[a + h] : Infinity;
        const exact = both > max(1, leftScale) * TINY && first > max(1, rightScale) * TINY;
        if (exact) here[h] += before * labelled + after * (labelled * both / first);
        else here[h] += before * labelled + part(after, chart[b + h] + child - chart[a + h]);
        const below = here[h] + before * rest; // the probability of U
        toLeft[h] = exact ? below * (leftScale / both) : 0;
        toRight[h] = exact ? toLeft[h] + after * (rightScale / first) : 0;
        for (let k = i + 1; k < (exact ? i : j); k++) {
          const value = chart[row(i, k) + h] + chart[row(j, k) + h];
          let share = part(below, value + over - chart[b + h]);
          if (k > h) share += part(after, value - chart[a + h]);
          shares[row(i, k) + h] += share;
          shares[row(j, k) + h] += share;
        }
      }
      for (let k = j - 1; k > i; k--) {
        toRight[k] = toLeft[k]; // and of all larger h
        const factor = exp(top[cell(i, k)] + top[cell(k, j)] - top[cell(j, i)]);
        const [left, right] = [row(i, k), row(j, k)];
        for (let h = i; h < j; h++) {
          const share = toRight[h] * (factor * (scaled[left + h] * scaled[right + h]));
          shares[left + h] += share;
          shares[right + h] += share;
        }
      }
      for (let h = i; h < j; h++) spans[cell(i, j)] += here[h] * exp(name);
    }
  }
  slopeSums.forEach((value, at) => { arcSums[at] += value * arcWeights[at]; });
  return { spans, arcSums };
}
