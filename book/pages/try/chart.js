// Scores of labelled spans from the parts that the network gives: S = B + A, with A(i, j, l) = sum_t a_t v_t over the words of the
// span (lalkit/network/span_attention.py). Running sums in float64, as there; S is rounded to float32.
const FLOOR = 600; // e^-600 is far above the least float64, so no span divides by 0

// logits, evidence: Float32Array [n, H], of each word for each label head. boundary: Float32Array [n+1, n+1, H].
// Returns Float32Array [n+1, n+1, H+1]; the empty label, index 0, scores 0.
export function spanScores({ logits, evidence, boundary }, n) {
  const heads = logits.length / n;
  const powers = powersOf(logits, n, heads);
  const scores = new Float32Array((n + 1) ** 2 * (heads + 1));
  const above = new Float64Array(heads);
  const below = new Float64Array(heads);
  for (let i = 0; i < n; i++) {
    above.fill(0);
    below.fill(0);
    for (let j = i + 1; j <= n; j++) {
      const word = (j - 1) * heads;
      const cell = i * (n + 1) + j;
      for (let l = 0; l < heads; l++) {
        above[l] += powers[word + l] * evidence[word + l];
        below[l] += powers[word + l];
        scores[cell * (heads + 1) + l + 1] = boundary[cell * heads + l] + Math.fround(above[l] / below[l]);
      }
    }
  }
  return scores;
}

// e^logit of every word, relative to the greatest one of the sentence.
function powersOf(logits, n, heads) {
  const top = new Float64Array(heads).fill(-Infinity);
  logits.forEach((value, at) => { top[at % heads] = Math.max(top[at % heads], value); });
  return Float64Array.from(logits, (value, at) => Math.exp(Math.max(value - top[at % heads], -FLOOR)));
}

// The exact terms of the score of one label head (from 0) over a span: attention and evidence of each word, and the boundary.
export function termsOf({ logits, evidence, boundary }, n, { start, end }, head) {
  const heads = logits.length / n;
  const column = (array) => Array.from({ length: end - start }, (_, t) => array[(start + t) * heads + head]);
  const top = Math.max(...column(logits));
  const powers = column(logits).map((logit) => Math.exp(logit - top));
  const whole = powers.reduce((a, b) => a + b, 0);
  const attention = powers.map((power) => power / whole);
  const values = column(evidence);
  const value = attention.map((part, t) => part * values[t]);
  const edge = boundary[(start * (n + 1) + end) * heads + head];
  return { attention, evidence: values, value, boundary: edge, score: value.reduce((a, b) => a + b, 0) + edge };
}
