// The sub-words of a word, as the tokenizer of MiniLM (BERT, uncased) gives them: the library tokenizers with tokenizer.json.
const HAN = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;
const QUOTES = new Map([["``", '"'], ["''", '"']]); // no plain object: it has a constructor, too
const LONGEST = 100; // characters of a part that is looked up

// table: Map from a sub-word to its id. Returns ids, at least one.
export function wordPieces(word, table) {
  const ids = parts(normalised(QUOTES.get(word) ?? word)).flatMap((part) => pieces(part, table));
  return ids.length ? ids : [table.get("[UNK]")];
}

// Whether a sentence is in a language that the parser never learned: `is_unlearned` in lalkit/treebank/text.py.
export function unlearned(words, table, { common = [], foreign = [] }) {
  const some = words.filter((word) => /\p{L}/u.test(word));
  if (!common.length || some.length < 3) return false;
  some[0] = some[0].charAt(0).toLowerCase() + some[0].slice(1);
  const few = some.length < 20;
  const known = some.filter((word) => common.includes(word.toLowerCase())).length;
  if (common.includes("the") && some.filter((word) => foreign.includes(word)).length > known) return true;
  const lower = some.filter((word) => /^\p{Ll}+$/u.test(word));
  if (known >= (few ? 1 : 0.1 * some.length) || lower.length < Math.max(3, (few ? 0.8 : 0.5) * some.length)) return false;
  return lower.flatMap((word) => wordPieces(word, table)).length >= (few ? 2.5 : 1.5) * lower.length;
}

function normalised(text) {
  const clean = text.replace(/(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\0\ufffd]/gu, "").replace(/\p{White_Space}/gu, " ");
  const bare = clean.replace(HAN, " $& ").normalize("NFD").replace(/\p{Mn}/gu, "");
  return [...bare].map((character) => character.toLowerCase()).join("");
}

// A sign of punctuation is a part of its own.
const parts = (text) => text.match(/[\p{P}!-/:-@[-`{-~]|[^\s\p{P}!-/:-@[-`{-~]+/gu) ?? [];

// The longest sub-word first, again and again; one unknown sub-word if that does not work.
function pieces(part, table) {
  const letters = [...part];
  const unknown = [table.get("[UNK]")];
  const ids = [];
  if (letters.length > LONGEST) return unknown;
  for (let start = 0, end; start < letters.length; start = end) {
    for (end = letters.length; end > start; end--) {
      const piece = (start ? "##" : "") + letters.slice(start, end).join("");
      if (table.has(piece)) {
        ids.push(table.get(piece));
        break;
      }
    }
    if (end === start) return unknown;
  }
  return ids;
}
