// What the scores of the constituent would be without the evidence of one word. This is exact: its terms leave the sums.
function chooseWord(position) {
  state.word = position;
  for (const button of byId("bars").querySelectorAll("button.bar")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.word) === position));
  }
  showWord();
  page.remember();
  say(position === null ? "no word chosen" : byId("word-says").textContent);
}

const letGo = () => state.word !== null && chooseWord(null);

function showWord() {
  const of = span();
  const place = of && state.word !== null ? state.word - 1 - of.start : -1;
  const inside = of && place >= 0 && place < of.end - of.start;
  byId("without").hidden = !inside;
  showHolders();
  byId("word-title").textContent = inside ? `Without \u201c${wordAt(state.word)}\u201d` : "Without a word";
  byId("word-says").textContent = inside ? verdict(of, place)
    : of && state.word !== null ? "The chosen word is outside this constituent, so it adds nothing to the score."
      : "Click a word's bar to see what this constituent would score if that word had no evidence.";
  if (!inside) return;
  const rows = of.readings.map((one, i) => cells(
    one.label, i ? "second" : "here", plain(one.score), plain(one.score - one.value[place]), signed(-one.value[place]),
  ));
  byId("without").querySelector("tbody").replaceChildren(...rows);
}

const chooseColumn = (column) => column > 0 && column <= sentence().words.length && chooseWord(column === state.word ? null : column);

// What the chosen word adds to every constituent that it is in, from the smallest.
function showHolders() {
  const holding = sentence().spans.filter((of) => state.word !== null && of.start < state.word && state.word <= of.end).reverse();
  byId("holders").hidden = !holding.length;
  if (holding.length) byId("holders-say").textContent = `What \u201c${wordAt(state.word)}\u201d adds to the score of each constituent around it:`;
  const values = holding.map((of) => of.readings[0].value[state.word - 1 - of.start]);
  const ends = [Math.min(0, ...values), Math.max(0, ...values)];
  byId("holders").replaceChildren(...holding.map((of, i) => choice(`${of.label}, ${range(of)}`, values[i], signed(values[i]), ends, () => select(of))));
}

function verdict(of, place) {
  const [label, score] = of.then[place];
  const first = label === of.label ? `${label} would still come first` : `${label} would come first instead of ${of.label}`;
  return `If this word had no evidence for any label, ${first} over these words, with the score ${plain(score)}.${
    score < 0 ? " This is less than 0, the score of no constituent." : ""}`;
}

byId("bars").addEventListener("click", (event) => {
  const button = event.target.closest("button.bar");
  if (!button) return;
  const position = Number(button.dataset.word);
  chooseWord(position === state.word ? null : position);
});
