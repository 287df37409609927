// The self-attention of other layers, as a table from word to word. layers: name -> [heads][words + 2][words + 2].
function showLayers({ layers, words }) {
  find("layers").hidden = !layers;
  if (!layers) return;
  const heads = layers[choose("layer", Object.keys(layers))];
  const rows = heads[choose("layer-head", heads.map((_, head) => String(head)))];
  const names = ["START", ...words, "STOP"];
  find("layer-grid").replaceChildren(make("tr", {}, make("td"), ...names.map((name) => make("th", { scope: "col" }, name))), ...rows.map((row, i) =>
    make("tr", {}, make("th", { scope: "row" }, names[i]), ...row.map((value, j) => gridCell(value, names[i], names[j])))));
}

function gridCell(value, from, to) {
  const cell = make("td", { title: `${percent(value)} of the attention of ${from} goes to ${to}` }, String(Math.round(100 * value) || ""));
  cell.style.background = `color-mix(in srgb, var(--most) ${100 * value}%, var(--ground))`;
  return cell;
}

// Offer these values, and return the chosen one.
function choose(id, values) {
  const select = find(id);
  const before = select.value;
  select.replaceChildren(...values.map((value) => make("option", { value }, value)));
  select.value = values.includes(before) ? before : values[0];
  return select.value;
}
for (const id of ["layer", "layer-head"]) find(id).addEventListener("change", () => showLayers(data.panes[0].sentences[shown.sentence]));
