// What the explorer's page of terms says is compared with the data inside it (test_explorer_browser.py). Returns what is wrong.
([check]) => {
  const { spans, words } = JSON.parse(document.getElementById("data").textContent).panes[0].sentences[0];
  const wrong = [];
  const same = (what, found, wanted) => JSON.stringify(found) !== JSON.stringify(wanted) && wrong.push([what, found, wanted]);
  const near = (what, found, wanted, within) => {
    const off = (value, i) => !(Math.abs(value - wanted[i]) <= Math.max(within, 0.006 * Math.abs(wanted[i])));
    if (found.length !== wanted.length || found.some(off)) wrong.push([what, found, wanted]);
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => document.querySelector(selector).textContent;
  const cells = (table) => all(`${table} tbody tr`).map((row) => [...row.cells].map((cell) => cell.textContent));
  const number = (written) => Number(written.replace("\u2212", "-").replace("+", "").replace("\u00a0%", ""));
  const box = (index) => document.querySelector(`.constituent[data-span="${index}"]`);
  const happen = (item, name) => item.dispatchEvent(new Event(name, { bubbles: true }));
  const choose = (id, value) => {
    document.getElementById(id).value = value;
    happen(document.getElementById(id), "change");
  };
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const listed = (span, wanted, which) => {
    const names = [...words.slice(span.start, span.end), `first word: ${words[span.start]}`, `last word: ${words[span.end - 1]}`, "constant"];
    const agree = (order) => {
      const bars = all("#bars .bar:not(.score)");
      same("names", bars.map((bar) => bar.querySelector(".name").textContent), order.map((i) => names[i]));
      near("numbers", bars.map((bar) => number(bar.querySelector(".number").textContent)), order.map((i) => wanted[i]), 0.00051);
    };
    choose("reading", which);
    choose("order", "place");
    same("terms", wanted.length, 13);
    agree(wanted.map((_, i) => i));
    near("sum", [number(/together (\S+)\. /.exec(text("#terms-say"))[1])], [sum(wanted)], 0.01);
    choose("order", "size");
    agree(wanted.map((_, i) => i).sort((a, b) => Math.abs(wanted[b]) - Math.abs(wanted[a])));
    near("table", cells("#terms").map((row) => number(row[4])), wanted, 0.0051);
  };
  const checks = {
    every_word_and_edge_is_listed_for_either_label_and_their_difference() {
      const [own, second] = spans[0].readings.map(({ value, rest }) => [...value, ...Object.values(rest)]);
      happen(box(0), "pointerover");
      document.getElementById("more-terms").click();
      [own, second, own.map((value, i) => value - second[i])].forEach((wanted, which) => listed(spans[0], wanted, which));
    },
    the_second_label_stands_beside_and_what_is_shaded_is_inside_the_span() {
      const span = spans[2];
      const [own, second] = span.readings;
      happen(box(2), "click");
      same("scores", [text("#scores").startsWith(`${own.label} scores `), text("#scores").includes(`${second.label} comes second with`)], [true, true]);
      const inside = own.value.map((_, k) => String(span.start + 1 + k));
      const shaded = all(".heat").filter((item) => item.style.fillOpacity > 0);
      const numbers = () => inside.map((column) => number(text(`.parse .number[data-column="${column}"]`) || "0"));
      same("shaded", shaded.map((item) => item.dataset.column), inside);
      same("colours", shaded.map((item) => item.classList.contains("least")), own.value.map((value) => value < 0));
      near("shares", numbers(), own.value.map((value) => (100 * value) / sum(own.value.map(Math.abs))), 0.51);
      choose("shading", "attention");
      near("attention", numbers(), own.attention.map((share) => 100 * share), 0.51);
      same("START", getComputedStyle(all(".end")[0]).visibility, "hidden");
    },
    what_would_be_without_a_word() {
      const places = spans.flatMap((span, i) => span.then.map(([label], k) => [i, k, label === span.label]));
      for (const [i, k, stays] of [false, true].map((kept) => places.find((place) => place[2] === kept))) {
        const { readings, label, then } = spans[i];
        happen(box(i), "click");
        choose("order", "place");
        all("button.bar").filter((bar) => bar.dataset.word)[k].click();
        const said = text("#word-says");
        const verdict = stays ? "would still come first" : `would come first instead of ${label}`;
        same("verdict", [said.includes(`${then[k][0]} ${verdict}`), said.includes("less than 0")], [true, then[k][1] < 0]);
        const rows = cells("#without");
        same("labels", rows.map((row) => row[0]), readings.map((one) => one.label));
        rows.forEach((row, r) => {
          const { score, value } = readings[r];
          near("numbers", row.slice(2).map(number), [score, score - value[k], -value[k]], 0.0051);
        });
        for (const _ of [1, 2]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
      }
      same("title", text("#word-title"), "Without a word");
    },
  };
  checks[check]();
  return wrong;
}
