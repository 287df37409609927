// The words of typed text. The rules are those of lalkit/treebank/text.py: its one regular expression comes with the model, in
// Python's notation, and is translated here. JavaScript's \w, \d, \s and \b know ASCII only or other spaces.
const WORD = "\\p{L}\\p{N}_";
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const INSIDE = { "\\w": WORD, "\\d": "\\p{Nd}", "\\s": SPACE, "\\#": "#", '\\"': '"' }; // between square brackets
const OUTSIDE = {
  "\\w": `[${WORD}]`, "\\W": `[^${WORD}]`, "\\d": "\\p{Nd}", "\\s": `[${SPACE}]`, "\\S": `[^${SPACE}]`, "\\#": "#", '\\"': '"',
  "\\b": `(?:(?<![${WORD}])(?=[${WORD}])|(?<=[${WORD}])(?![${WORD}]))`, "$": "(?=\\n?$)", "[^\\W\\d]": "[\\p{L}\\p{Nl}\\p{No}_]",
};
const ALIKE = { i: "\u0130\u0131", k: "\u212a", s: "\u017f" }; // the same letters for Python, where case does not count
const STEPS = /\[\^\\W\\d\]|\\U([0-9a-f]{8})|\\[xu][0-9a-f]+|\\.|\(\?i:|\(\?[:=!]|\(\?<[=!]|[\s\S]/gu;

export function translate(pattern) {
  let square = false;
  const groups = []; // of each open bracket: whether case counts inside
  let anyCase = false;
  return pattern.replace(STEPS, (step, code) => {
    if (code) return `\\u{${code.replace(/^0+/, "")}}`;
    if (square) {
      if (step === "]") square = false;
      return Object.hasOwn(INSIDE, step) ? INSIDE[step] : step;
    }
    if (step === "[") square = true;
    if (step[0] === "(") {
      groups.push(anyCase);
      anyCase ||= step === "(?i:";
      return step === "(?i:" ? "(?:" : step;
    }
    if (step === ")") anyCase = groups.pop();
    if (anyCase && /^[a-z]$/i.test(step)) {
      const small = step.toLowerCase();
      return `[${small}${small.toUpperCase()}${ALIKE[small] ?? ""}]`;
    }
    return Object.hasOwn(OUTSIDE, step) ? OUTSIDE[step] : step;
  });
}

export const tokenPattern = (pattern) => new RegExp(translate(pattern), "gu");

// The words of a sentence: slices of the text.
export const wordsOf = (text, pattern) => text.match(pattern) ?? [];

// Whether most letters are Chinese ones, which are written without spaces between words.
export function isChinese(text) {
  const letters = text.match(/[\p{L}\p{N}]/gu) ?? [];
  const han = text.match(/[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]/gu) ?? [];
  return 2 * han.length > letters.length;
}

// Running text as sentences, each a list of words: one ends after . ! ? or … and what closes with it, if a space and no small
// letter follow, and at a blank line. Abbreviations are one word with their full stop, so they end nothing.
export function sentencesOf(text, pattern) {
  return text.split(/\n\s*\n/).flatMap((paragraph) => {
    const sentences = [[]];
    let [ended, last] = [false, 0]; // whether the sentence may end here; where the last word ended
    for (const { 0: word, index } of paragraph.matchAll(pattern)) {
      const spaced = index > last;
      if (ended && spaced && word !== "''" && /[\p{Lu}\p{Lt}\p{Lo}\p{N}\p{Pi}\p{Ps}"'`]/u.test(word[0])) {
        sentences.push([]);
        ended = false;
      }
      sentences.at(-1).push(word);
      ended = /^(?:[.!?]+|…+)$/u.test(word) || (ended && /^["'\p{Pf}\p{Pe}]+$/u.test(word));
      last = index + word.length;
    }
    return sentences.filter((sentence) => sentence.length);
  });
}
