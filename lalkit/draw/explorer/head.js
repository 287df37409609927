// One label head: where it attends, and which labels it leads over the corpus.
const FEW_LABELS = 8;

function chooseHead(head) {
  state.head = head;
  for (const button of byId("bars").querySelectorAll(".bar")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.head) === head));
  }
  markHeat();
  showHead();
  page.remember();
  say(head === null ? "no label head chosen" : `label head ${head}: ${byId("head-says").textContent}`);
}

// The attention of the chosen label head to START, the words and STOP.
function heat() {
  if (state.head === null) return null;
  const row = sentence().attention[state.head];
  const most = Math.max(...row);
  return {
    part: (column) => row[column] / most,
    tip: (column) => `${percent(row[column])} of label head ${state.head}'s attention`,
    number: (column) => Math.round(100 * row[column]) || "",
  };
}

const letGo = () => (state.head !== null ? chooseHead(null) : state.word !== null && chooseColumn(state.word));

// A click on a word lists the label heads that look at it; START and STOP cannot be chosen.
function chooseColumn(column) {
  if (column < 1 || column > sentence().words.length) return;
  state.word = column === state.word ? null : column;
  showLooking();
  page.remember();
  say(state.word === null ? "no word chosen" : byId("looking-title").textContent);
}

function showLooking() {
  const { word } = state;
  const columns = sentence().attention.map((row, head) => ({ head, value: row[word ?? 0] }));
  const most = columns.sort((a, b) => b.value - a.value || a.head - b.head).slice(0, FEW_LABELS);
  byId("looking-panel").hidden = word === null;
  if (word === null) return;
  byId("looking-title").textContent = `Label heads that look at \u201c${sentence().words[word - 1]}\u201d`;
  byId("looking").replaceChildren(...most.map(({ head, value }) =>
    choice(`head ${head}`, value, percent(value), [0, 1], () => chooseHead(head === state.head ? null : head))));
}

function showHead() {
  const { head } = state;
  byId("head-panel").hidden = head === null;
  if (head === null) return;
  const row = sentence().attention[head];
  const names = ["START", ...sentence().words, "STOP"];
  const most = names.map((_, i) => i).sort((a, b) => row[b] - row[a] || a - b).slice(0, 3);
  const of = span();
  const rank = of && 1 + values(of).filter((value) => value > values(of)[head]).length;
  const inSpan = of ? `${show(values(of)[head])} by ${state.norm} in this ${of.label}, rank ${rank} of ${values(of).length}. ` : "";
  byId("head-title").textContent = `Label head ${head}`;
  byId("head-says").textContent = `${inSpan}It attends most to ${most.map((i) => `${names[i]} (${percent(row[i])})`).join(", ")}.`;
  byId("heat-says").textContent = `Shade on the words: the darkest is ${percent(Math.max(...row))} of its attention. The numbers below the words are percent.`;
  const rows = names.map((name, i) => cells(i === 0 || i === names.length - 1 ? "" : i, name, percent(row[i])));
  byId("attention").querySelector("tbody").replaceChildren(...rows);
  showProfile(head);
}

function showProfile(head) {
  const { profile } = data;
  const table = byId("profile");
  const more = byId("more-labels");
  table.hidden = true;
  more.hidden = true;
  if (!profile) {
    byId("profile-says").textContent = "There is no profile, because no corpus was counted for this page.";
    return;
  }
  const led = profile.led[head];
  const spans = sum(led);
  const all = sum(profile.all);
  const measure = profile.norm ? ` by ${profile.norm}` : "";
  byId("profile-says").textContent = `It is the top label head${measure} of ${spans} of the ${profile.spans} spans of `
    + `${profile.corpus}.${spans ? " The table shows each label's share of these spans (led) and of all spans (all). Lift is led divided by all." : ""}`;
  if (!spans) return;
  const rows = profile.labels
    .map((label, i) => ({ label, led: led[i] / spans, all: profile.all[i] / all, count: led[i] }))
    .filter((row) => row.count > 0)
    .sort((a, b) => b.led - a.led);
  const shown = state.allLabels ? rows : rows.slice(0, FEW_LABELS);
  const widest = Math.max(...rows.map((row) => Math.max(row.led, row.all)));
  table.querySelector("tbody").replaceChildren(...shown.map((row) => profileRow(row, widest)));
  table.hidden = false;
  more.hidden = rows.length <= FEW_LABELS;
  more.textContent = state.allLabels ? `Show the first ${FEW_LABELS} only` : `Show all ${rows.length} labels it leads`;
}

function profileRow(row, widest) {
  const line = (share) => {
    const bar = make("i");
    bar.style.width = `${(100 * share) / widest}%`;
    return bar;
  };
  const tr = cells(row.label, "", percent(row.led), percent(row.all), (row.led / row.all).toFixed(2));
  tr.title = `${row.count} spans`;
  const pair = make("span", {}, line(row.led), line(row.all));
  pair.setAttribute("aria-hidden", "true");
  tr.children[1].className = "pair";
  tr.children[1].append(pair);
  return tr;
}

byId("more-labels").addEventListener("click", () => {
  state.allLabels = !state.allLabels;
  showHead();
});
