// What one pane shows: a sentence of its data, and the constituent in its panel.
const state = { span: null, pinned: false };
// The panel lists label heads (bars.js, head.js), words (terms.js, word.js), or nothing more (plain.js). Each kind defines
// showPanel(); letGo(), for Escape; behind(of), which describes the best of a constituent in a few words; heat(), which
// returns null or what the words are shaded by; chooseColumn(column), for a click on a word; and kept, what the address keeps
// of the state: a name and a function that reads its value from text, or returns undefined.
const byId = (id) => panel.querySelector(`#${id}`) ?? document.getElementById(id);
const sentence = () => data.sentences[shown.sentence];
const span = () => (state.span === null ? null : sentence().spans[state.span]);

const range = (of) => (of.end - of.start === 1 ? `word ${of.end}` : `words ${of.start + 1} to ${of.end}`);

// The words of a constituent; of a long one, the first and the last.
function wordsOf(of) {
  const words = sentence().words.slice(of.start, of.end);
  return (words.length > 12 ? [...words.slice(0, 7), "\u2026", ...words.slice(-4)] : words).join(" ");
}

// "NP, words 1 to 2: the person, head word person; ..."
function describe(of) {
  return `${of.label}${folded(of) ? ", folded" : ""}, ${range(of)}: ${wordsOf(of)}${headWord(of)}${sureOf(of)}; ${behind(of)}${against(of)}`;
}

const sureOf = (of) => (of.probability === undefined ? "" : `, probability ${percent(of.probability)}`);
const headWord = (of) => (of.head ? `, head word ${sentence().words[of.head - 1]}` : "");

// Write the panel's first two lines. what: the things it lists. Returns false if no constituent is shown.
function showTitle(of, what) {
  byId("constituent").textContent = of ? `${of.label}: ${wordsOf(of)}` : "Point at a constituent";
  byId("about").textContent = of
    ? `${capital(range(of))}${headWord(of)}${sureOf(of)}${against(of)}. ${state.pinned ? "Pinned; press Esc to unpin it." : ""}`
    : sentence().spans.length
      ? `Its ${what} will be listed here. Click (or press Enter) to pin it; press Esc to unpin it.`
      : "This sentence has no constituents.";
  if (pane === page.pane) byId("about").after(constrain);
  if (pane === page.pane) constrain.hidden = !data.constrain || !state.pinned;
  if (pane === page.pane && !constrain.hidden) showPhrase(of);
  return Boolean(of);
}

function against(of) {
  if (of.gold === "extra") return `; not in ${data.other}`;
  return of.gold && of.gold.label ? `; ${data.other} has ${of.gold.label} there` : "";
}

