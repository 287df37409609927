// Fold constituents, and hide improbable ones. The drawing was laid out in Python; the room that is free now is cut out of it.
const LEVEL = 42; // from one row of labels to the next, and LABEL, their size: as in tree.py
const LABEL = 14;
const OVER = 13; // from the top of a row of arcs to its line, and from there to the next row: as in arcs.py
const BELOW = 8;

const placeOf = (of) => `${of.start + 1}-${of.end}`;
const likely = (of) => (of.probability ?? 1) >= shown.least / 100;
const folded = (of) => shown.folded.has(placeOf(of)) && likely(of) && of.end - of.start > 1;
const above = (of) => (of.parent === null ? [] : [sentence().spans[of.parent], ...above(sentence().spans[of.parent])]);
const isShown = (of) => likely(of) && !above(of).some(folded);
const widest = (items, room = 0) => Math.max(0, ...items.map((item) => item.getBBox().width + room));

// The words of a folded constituent: at most the first two and the last two.
function shortened(of) {
  const words = sentence().words.slice(of.start, of.end).map((word) => (word.length > 12 ? `${word.slice(0, 11)}…` : word));
  return (words.length > 4 ? [...words.slice(0, 2), "…", ...words.slice(-2)] : words).join(" ");
}

function arrange() {
  const { spans } = sentence();
  const all = (selector) => [...picture().querySelectorAll(selector)];
  const places = new Map(all(".number").map((item) => [item.getAttribute("x"), Number(item.dataset.column)]));
  const shut = spans.filter((of) => folded(of) && isShown(of));
  const holder = (word) => shut.find((of) => of.start < word && word <= of.end);
  const goes = (key) => (key[0] === "w" ? Boolean(holder(Number(key.slice(1)))) : !isShown(spans[key]));
  const rows = (selector, row) => new Set(all(selector).map(row));
  const height = (item) => get(item, "y");
  const depth = (item) => numbers(item.getAttribute("d"))[item.dataset.head === "0" ? 1 : 4];
  const before = [rows("text[data-of]", height), rows("path[data-arc]", depth)];

  reattach(all("path[data-to]"), goes);
  for (const item of all("text[data-of], .constituent, .veil")) if (goes(item.dataset.of ?? item.dataset.span)) item.remove();
  for (const item of all("[data-arc]")) {
    const of = holder(Number(item.dataset.arc));
    if (of && of === holder(Number(item.dataset.head))) item.remove();
  }
  for (const item of all("text:not([data-of], [data-arc], .number)")) if (holder(places.get(item.getAttribute("x")))) item.remove();
  if (holder(Number(picture().querySelector('[data-head="0"]').dataset.arc))) all("path:not([data-to], [data-arc])").forEach((item) => item.remove());
  for (const item of all(".heat, .number")) item.classList.toggle("gone", Boolean(holder(Number(item.dataset.column))));

  const free = ([from, to]) => to > from;
  const after = [rows("text[data-of]", height), rows("path[data-arc]", depth)];
  const lost = before.map((found, i) => [...found].filter((row) => !after[i].has(row)));
  const down = [...lost[0].map((y) => [y - LABEL, y + LEVEL - LABEL]), ...lost[1].map((y) => [y - OVER, y + BELOW])];
  const edges = shut.map((of) => room(of, all));
  const across = edges.flatMap(({ cuts }) => cuts.filter(free));
  const without = (cuts) => (x) => x - sum(cuts.map(([from, to]) => Math.min(Math.max(x - from, 0), to - from)));
  move(all, without(across), without(down));
  shut.forEach((of, i) => triangle(of, edges[i], without(across), all));
}

// Remove the lines to what goes. What hangs below an improbable constituent hangs below the next one above it.
function reattach(lines, goes) {
  const to = new Map(lines.filter((line) => line.dataset.of !== line.dataset.to).map((line) => [line.dataset.to, line]));
  for (const line of lines) {
    let from = line;
    let thick = line.classList.contains("head");
    while (from && !likely(sentence().spans[from.dataset.of])) {
      from = to.get(from.dataset.of);
      thick = thick && from?.classList.contains("head");
    }
    if (!from || goes(line.dataset.to)) line.remove();
    else if (from !== line) {
      const [x, y, , bend] = numbers(from.getAttribute("d"));
      const own = numbers(line.getAttribute("d"));
      line.setAttribute("d", `M${x} ${y} L${own[2]} ${bend} V${own.at(-1)}`);
      if (!thick) for (const name of ["class", "stroke", "stroke-width"]) line.setAttribute(name, { class: "", stroke: "#8C8C8C", "stroke-width": 1.2 }[name]);
    }
  }
}

// The edges of a folded constituent, and what can be cut out between them. The ends of its arcs stay, and room for all labels.
function room(of, all) {
  const inside = (word) => of.start < Number(word) && Number(word) <= of.end;
  const labels = all("text[data-arc]");
  const crossing = ({ dataset }) => inside(dataset.arc) !== inside(dataset.head);
  const ends = all("path[data-arc]").filter(crossing).map((item) => {
    const ends = numbers(item.getAttribute("d"));
    return ends.length > 3 && inside(item.dataset.arc) ? ends[8] : ends[0];
  });
  const first = cell("heat", of.start + 1);
  const last = cell("heat", of.end);
  const left = Math.min(get(first, "x") - 3, ...ends.map((x) => x - LABEL));
  const right = Math.max(get(last, "x") + get(last, "width") + 3, ...ends.map((x) => x + LABEL));
  const named = [of, ...above(of)].flatMap((one) => all(`text[data-of="${sentence().spans.indexOf(one)}"]`));
  const text = shape("text", { "font-size": 15, "text-anchor": "middle", class: "folded" }, shortened(of));
  picture().append(text);
  const half = Math.max(widest([...named, text], 16) / 2, widest(labels, 20) / 2, widest(labels.filter(crossing), 20));
  text.remove();
  const middle = (left + right) / 2;
  const [from, to] = ends.length ? [Math.min(...ends) - 8, Math.max(...ends) + 8] : [middle, middle];
  return { left, right, text, cuts: [[left + half, Math.min(from, right - half)], [Math.max(to, left + half), right - half]] };
}

// Move everything: x and y say where a place of the drawing is now.
function move(all, x, y) {
  for (const item of all("text, rect")) {
    const wide = item.tagName === "rect" ? get(item, "width") : 0;
    const ground = wide && (item.parentNode === picture());
    item.setAttribute("x", ground ? x(get(item, "x")) : x(get(item, "x") + wide / 2) - wide / 2);
    if (ground) item.setAttribute("width", x(get(item, "x") + wide) - x(get(item, "x")));
    if (wide) item.setAttribute("height", y(get(item, "y") + get(item, "height")) - y(get(item, "y")));
    item.setAttribute("y", y(get(item, "y")));
  }
  for (const item of all("polygon")) {
    const [left, top] = numbers(item.getAttribute("points"));
    item.setAttribute("points", numbers(item.getAttribute("points")).map((one, i) => one + (i % 2 ? y(top) - top : x(left) - left)).join(" "));
  }
  for (const item of all("path")) {
    const moved = (command, text) => numbers(text).map((one, i) => (command === "V" || (command !== "H" && i % 2) ? y : x)(one)).join(" ");
    item.setAttribute("d", item.getAttribute("d").replace(/([MLHVQ])([^MLHVQ]*)/g, (_, command, text) => `${command}${moved(command, text)} `));
    if (!item.dataset.arc) continue;
    const ends = numbers(item.getAttribute("d"));
    const middle = ends.length > 3 ? (ends[0] + ends[8]) / 2 : ends[0];
    for (const label of all(`:is(text, rect)[data-arc="${item.dataset.arc}"]`)) label.setAttribute("x", middle - get(label, "width") / 2);
  }
  const [left, , width, height] = numbers(picture().getAttribute("viewBox"));
  picture().setAttribute("viewBox", `${left} 0 ${x(left + width) - x(left)} ${y(height)}`);
}

function triangle(of, { left, right, text }, x, all) {
  const index = sentence().spans.indexOf(of);
  const label = all(`text[data-of="${index}"]`).sort((a, b) => get(b, "y") - get(a, "y"))[0];
  const bottom = get(cell("heat", 0), "y") + 15;
  const points = `${get(label, "x")},${get(label, "y") + 5} ${x(left) + 4},${bottom - 17} ${x(right) - 4},${bottom - 17}`;
  text.setAttribute("x", (x(left) + x(right)) / 2);
  text.setAttribute("y", bottom);
  for (const item of [shape("polygon", { points, class: "fold" }), text]) {
    item.dataset.span = index;
    picture().insertBefore(item, picture().querySelector(".constituent"));
  }
}

// Fold a constituent, or open it again. Without one, open all.
function fold(index) {
  const of = index === null ? null : sentence().spans[index];
  if (of === null) shown.folded.clear();
  else if (of.end - of.start < 2) return say("a constituent of one word cannot be folded");
  else if (!shown.folded.delete(placeOf(of))) shown.folded.add(placeOf(of));
  page.redraw();
  page.remember();
  return say(of ? `${folded(of) ? "folded" : "opened"}: ${describe(of)}` : "all constituents are open");
}
