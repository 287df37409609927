// The best joint tree, exactly: the algorithm and the rules for ties of lalkit/chart/joint.py, in float32 as there.
// U[i, j, h] is the best score inside the span (i, j) with head word h; chart[i, j, h] is T in that file.
const { fround } = Math;

// labelScores: Float32Array [n+1, n+1, L], index 0 is the empty label. arcScores: Float32Array [n, n+1], column 0 is the root.
// Returns the score, the labelled spans {start, end, label, head} from the top down (label: an index; head: from 1), and the
// head of each word (from 1; 0 is the root). Throws an Error if a score is not finite.
export function decode(labelScores, arcScores, n, lam = 0.5) {
  const labels = bestLabels(labelScores, n, fround(lam));
  const arcs = weightedArcs(arcScores, n, fround(1 - lam));
  const chart = fill(labels.best, arcs, n);
  return unwind(chart, labels, arcs, n);
}

// The best allowed label of every span and its weighted score. The first of equal ones wins.
function bestLabels(scores, n, weight) {
  const size = scores.length / (n + 1) ** 2;
  const best = new Float32Array((n + 1) ** 2);
  const label = new Int32Array((n + 1) ** 2);
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j <= n; j++) {
      const cell = i * (n + 1) + j;
      const row = scores.subarray(cell * size, (cell + 1) * size);
      if (row[0] !== 0 || !row.every(Number.isFinite)) throw new Error(`the scores of the span (${i}, ${j}) are not finite, or its empty label is not 0`);
      const first = firstLabel(i, j, n);
      let top = -Infinity;
      for (let k = first; k < size; k++) {
        const value = fround(weight * row[k]);
        if (value > top) [top, label[cell]] = [value, k];
      }
      best[cell] = top;
    }
  }
  return { best, label };
}

// <H>, index 1, is never one word and never the whole sentence.
export const firstLabel = (i, j, n) => (j - i === 1 || j - i === n ? 2 : 1);

function weightedArcs(scores, n, weight) {
  const arcs = new Float32Array(n * (n + 1));
  for (let d = 0; d < n; d++) {
    for (let h = 0; h <= n; h++) {
      const value = h === d + 1 ? 0 : scores[d * (n + 1) + h]; // a word is never its own head
      if (!Number.isFinite(value)) throw new Error(`the score of the arc from ${h} to ${d + 1} is not finite`);
      arcs[d * (n + 1) + h] = weight * value;
    }
  }
  return arcs;
}

// Write U[i, j, h] into out.
function content(chart, n, i, j, out) {
  const at = (a, b) => (a * (n + 1) + b) * n;
  if (j - i === 1) {
    out[i] = 0;
    return;
  }
  out.fill(-Infinity, i, j);
  for (let k = i + 1; k < j; k++) {
    const [left, right] = [at(i, k), at(k, j)];
    for (let h = i; h < j; h++) {
      const value = chart[left + h] + chart[right + h];
      if (value > out[h]) out[h] = value;
    }
  }
}

function fill(best, arcs, n) {
  const chart = new Float32Array((n + 1) ** 2 * n);
  const inside = new Float32Array(n);
  for (let j = 1; j <= n; j++) {
    for (let i = j - 1; i >= 0; i--) {
      content(chart, n, i, j, inside);
      const name = best[i * (n + 1) + j];
      const optional = Math.max(0, name);
      const obligatory = j - i === 1 ? optional : name;
      const cell = (i * (n + 1) + j) * n;
      chart.fill(-Infinity, cell, cell + n);
      for (let d = i; d < j; d++) {
        const child = fround(inside[d] + obligatory);
        for (let h = 0; h < n; h++) {
          const value = child + arcs[d * (n + 1) + h + 1];
          if (value > chart[cell + h]) chart[cell + h] = value;
        }
      }
      for (let h = i; h < j; h++) chart[cell + h] = inside[h] + optional;
    }
  }
  return chart;
}

// Follow the best choices down. They are searched again, which saves two charts.
function unwind(chart, { best, label }, arcs, n) {
  const inside = new Float32Array(n);
  const heads = new Array(n).fill(0);
  const spans = [];
  const cell = (i, j) => i * (n + 1) + j;
  content(chart, n, 0, n, inside);
  const rooted = (h) => fround(fround(inside[h] + best[n]) + arcs[h * (n + 1)]);
  const [root, score] = first(0, n, rooted);
  if (!Number.isFinite(score)) throw new Error("the scores are too large to add up");
  const stack = [[0, n, label[n], root]];
  while (stack.length) {
    const [i, j, name, h] = stack.pop();
    if (name > 0) spans.push({ start: i, end: j, label: name, head: h + 1 });
    if (j - i === 1) continue;
    const [split] = first(i + 1, j, (k) => fround(chart[cell(i, k) * n + h] + chart[cell(k, j) * n + h]));
    const [a, b] = h < split ? [split, j] : [i, split]; // the part without the head word
    content(chart, n, a, b, inside);
    const bare = b - a === 1 && !(best[cell(a, b)] > 0);
    const obligatory = bare ? 0 : best[cell(a, b)];
    const [dependent] = first(a, b, (d) => fround(fround(inside[d] + obligatory) + arcs[d * (n + 1) + h + 1]));
    heads[dependent] = h + 1;
    const child = [a, b, bare ? 0 : label[cell(a, b)], dependent];
    const [from, to] = h < split ? [i, split] : [split, j];
    const own = [from, to, best[cell(from, to)] > 0 ? label[cell(from, to)] : 0, h];
    stack.push(...(h < split ? [child, own] : [own, child])); // the left part leaves the stack first
  }
  return { score, spans, heads };
}

// The first place in from..to-1 with the greatest value, and the value.
function first(from, to, value) {
  let [place, top] = [from, value(from)];
  for (let k = from + 1; k < to; k++) {
    const other = value(k);
    if (other > top) [place, top] = [k, other];
  }
  return [place, top];
}
