// What the explorer's page of label heads says is compared with the data inside it (test_explorer_browser.py). Returns what is wrong.
([check, argument]) => {
  const { norms, sentences: [{ spans, words, attention }] } = JSON.parse(document.getElementById("data").textContent).panes[0];
  const wrong = [];
  const same = (what, found, wanted) => JSON.stringify(found) !== JSON.stringify(wanted) && wrong.push([what, found, wanted]);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => document.querySelector(selector).textContent;
  const percent = (value) => `${(100 * value).toFixed(1)}\u00a0%`;
  const box = (index) => document.querySelector(`.constituent[data-span="${index}"]`);
  const happen = (item, name) => item.dispatchEvent(new Event(name, { bubbles: true }));
  const choose = (id, value) => {
    document.getElementById(id).value = value;
    happen(document.getElementById(id), "change");
  };
  const near = (what, found, wanted, within) => {
    if (found.length !== wanted.length || found.some((value, i) => !(Math.abs(value - wanted[i]) <= within))) wrong.push([what, found, wanted]);
  };
  const checks = {
    a_norm_shows_its_own_numbers_and_says_what_it_is(norm) {
      const values = spans[4].values[norm];
      const agree = (order, heads) => {
        choose("order", order);
        const bars = all("#bars .bar");
        same(order, bars.map((bar) => bar.querySelector(".name").textContent), heads.map((head) => `head ${head}`));
        bars.forEach((bar, i) => {
          const shown = bar.querySelector(".number").textContent.replace("\u2212", "-");
          const [value, found] = [values[heads[i]], parseFloat(shown) / (shown.endsWith("%") ? 100 : 1)];
          if (!(Math.abs(found - value) <= Math.max(0.00051, 0.01 * Math.abs(value)))) wrong.push([order, heads[i], shown, value]);
        });
      };
      happen(box(4), "pointerover");
      document.getElementById("more-heads").click();
      choose("norm", norm);
      const heads = values.map((_, head) => head);
      agree("value", [...heads].sort((a, b) => values[b] - values[a] || a - b));
      agree("number", heads);
      agree("size", [...heads].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b));
      same("says", text("#norm-says"), `${norm}: ${norms[norm]}.`);
    },
    a_label_head_shows_its_attention_on_the_words() {
      happen(box(2), "click");
      const bar = all("#bars .bar")[1];
      bar.click();
      const row = attention[bar.dataset.head];
      const names = ["START", ...words, "STOP"];
      same("pressed", all('#bars .bar[aria-pressed="true"]').map((one) => one.dataset.head), [bar.dataset.head]);
      const cells = all(".heat").sort((a, b) => a.dataset.column - b.dataset.column);
      same("columns", cells.length, row.length);
      const dark = cells.map((cell, column) => {
        const tip = cell.querySelector("title").textContent;
        if (!tip.includes(`${names[column]}: ${percent(row[column])}`)) wrong.push(["tip", tip]);
        same("number", text(`.parse .number[data-column="${column}"]`), String(Math.round(100 * row[column]) || ""));
        return Number(cell.style.fillOpacity);
      });
      near("the more attention, the darker", dark, row.map((share) => share / Math.max(...row)), 1e-5);
      const table = all("#attention tbody tr").map((line) => [...line.cells].map((cell) => cell.textContent).slice(1));
      same("table", table, names.map((name, i) => [name, percent(row[i])]));
    },
    what_is_unsure_is_faint_and_can_be_hidden() {
      near("veils", all("#drawing .veil").map((veil) => Number(veil.style.opacity)), spans.map((span) => 0.45 * (1 - span.probability)), 1e-6);
      same("arcs", [all("#drawing .unsure").length, all("#drawing .doubtful").length], [1, 1]);
      if (!box(0).getAttribute("aria-label").includes(`probability ${percent(spans[0].probability)}`)) wrong.push(["says", box(0).ariaLabel]);
      const least = document.getElementById("least");
      least.value = 60;
      happen(least, "input");
      const kept = spans.flatMap((span, i) => (span.probability >= 0.6 ? [String(i)] : []));
      if (!kept.length || kept.length === spans.length) wrong.push(["none or all", kept]);
      same("kept", all("#drawing .constituent").map((item) => item.dataset.span), kept);
      same("output", text("#least-says"), "60 %");
    },
  };
  checks[check](argument);
  return wrong;
}
