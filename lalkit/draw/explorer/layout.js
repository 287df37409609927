// Where everything of a joint tree stands: the steps of lalkit/draw/tree.py, which explains them. A test compares the drawings.
const [WORD, TAG, LABEL, ARC_LABEL, NUMBER] = [15, 12, 14, 12, 12]; // font sizes
const [LEVEL, MARGIN, TAG_TO_WORD, LINE_GAP, GAP, UNDER_WORDS] = [42, 16, 19, 5, 14, 24]; // numbers stand under the words
const [FIRST, STEP, LEG, CLOSE, CORNER, ARROW, PAD, LONG, LONGEST] = [24, 21, 7, 5, 6, 7, 3, 25, 32];
const WIDTHS = [["ijl.,:;'`|!Iíìîï·", 0.32], ['frt()[]{}-/\\" *', 0.42], ["mwMWQO%@&GD—…œæ", 0.95]]; // of characters, in em
const WIDE = /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d08}\u{1b000}-\u{1b2fb}\u{20000}-\u{3fffd}]|(?!\p{Regional_Indicator})\p{Emoji_Presentation}/u;
const MARKS = { same: "", extra: " \u00d7", head: " \u00d7", label: " \u2260" }; // × not in gold; ≠ gold has another label there

const textWidth = (text, size) => size * sum([...text].map(widthOf));
function widthOf(character) {
  if (/[\p{Mn}\p{Me}\p{Cf}]/u.test(character)) return 0;
  if (WIDE.test(character)) return 1.05;
  const usual = /\p{Uppercase}/u.test(character) ? 0.74 : 0.6;
  return WIDTHS.find(([characters]) => characters.includes(character))?.[1] ?? usual;
}
const shorten = (word) => ([...word].length <= LONGEST ? word : `${[...word].slice(0, LONGEST - 1).join("")}…`);

// The columns of a sentence: its words, and each folded constituent as one.
function columnsOf({ words, tags, spans }, isFolded) {
  const columns = [];
  for (let start = 0; start < words.length; start = columns.at(-1).end) {
    const fold = spans.findIndex((of) => of.start === start && isFolded(of));
    if (fold < 0) columns.push({ start, end: start + 1, tag: tags?.[start] ?? "", text: shorten(words[start]) });
    else columns.push({ fold, start, end: spans[fold].end, tag: "", text: shortened(words.slice(start, spans[fold].end)) });
  }
  return columns;
}

// The words of a folded constituent: at most the first two and the last two.
function shortened(words) {
  const short = words.map((word) => (word.length > 12 ? `${word.slice(0, 11)}…` : word));
  return (short.length > 4 ? [...short.slice(0, 2), "…", ...short.slice(-2)] : short).join(" ");
}

// The nodes of the tree, parents before their children: {label, of, from, to, level (0: a column), children}. from, to: columns.
// A unary chain, such as S::VP, is several nodes of one constituent. The first node is no constituent: it holds all.
function nodesOf({ spans }, columns, isHidden) {
  const nodes = [];
  const add = (node, parent) => {
    nodes.push({ level: 0, children: [], ...node });
    parent?.children.push(nodes.at(-1));
    return nodes.at(-1);
  };
  const open = [add({ label: "", from: 0, to: columns.length, end: columns.at(-1).end })];
  const waiting = spans.filter((of) => !isHidden(of)).reverse();
  columns.forEach(({ start, end, fold }, from) => {
    while (open.at(-1).end <= start) open.pop();
    while (waiting.at(-1)?.start === start) {
      const of = waiting.pop();
      const to = columns.findIndex((column) => column.end === of.end) + 1;
      const labels = of.label.split("::");
      labels[0] += MARKS[of.gold?.label === undefined ? of.gold ?? "same" : "label"];
      for (const label of labels) open.push(add({ label, of, from, to, end: of.end, head: of.head }, open.at(-1)));
    }
    add({ label: "", from, to: from + 1, head: fold === undefined && end }, open.at(-1));
  });
  for (const node of [...nodes].reverse()) if (node.children.length) node.level = 1 + Math.max(...node.children.map((child) => child.level));
  return nodes;
}

const gapOf = (columns) => (columns.length <= LONG ? GAP : CLOSE);

// Arcs between columns, short ones first and the root's last, each with its level and its distance from the centres of its ends.
function arcsOf({ heads, arc_labels: labels, comparison }, columns) {
  const place = (word) => columns.findIndex(({ start, end }) => start < word && word <= end);
  const named = (word) => (labels?.[word - 1] || (heads[word - 1] ? "" : "root")) + MARKS[comparison?.arcs[word - 1] ?? "same"];
  const arcs = [];
  const pairs = heads.map((head, i) => ({ dependent: i + 1, head, to: place(i + 1), from: place(head) })).filter(({ head, to, from }) => head && to !== from);
  pairs.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from) || a.dependent - b.dependent);
  for (const pair of pairs) {
    const arc = { ...pair, label: named(pair.dependent), left: Math.min(pair.to, pair.from), right: Math.max(pair.to, pair.from), offsets: {} };
    const inside = arcs.filter((inner) => arc.left <= inner.left && inner.right <= arc.right).map((inner) => inner.level);
    arcs.push({ ...arc, level: 1 + Math.max(0, ...inside) });
  }
  const root = heads.indexOf(0) + 1;
  const leg = Math.min(LEG, gapOf(columns));
  columns.forEach((_, column) => {
    const first = column === place(root) ? leg : leg / 2; // the root's own line stands in the centre
    for (const side of [-1, 1]) {
      const meeting = arcs.filter((arc) => (side < 0 ? arc.right : arc.left) === column);
      meeting.sort((a, b) => (a.left - a.right) - (b.left - b.right)).forEach((arc, k) => { arc.offsets[column] = side * (first + k * leg); });
    }
  });
  const level = 1 + Math.max(0, ...arcs.map((arc) => arc.level));
  return [...arcs, { dependent: root, head: 0, label: named(root), to: place(root), left: 0, right: place(root), level, offsets: { [place(root)]: 0 } }];
}

const room = ({ label }) => textWidth(label, LABEL) + GAP;
const arcRoom = ({ label }) => (label ? textWidth(label, ARC_LABEL) + 2 * (CORNER + PAD) : 2 * CORNER);

// Place the nodes so that each label fits over its words and on its arc. Returns the centres of the columns, and the width.
function spread(nodes, columns, arcs) {
  const gap = gapOf(columns);
  const slots = columns.map(({ text, tag }, column) => {
    const ends = arcs.map((arc) => 2 * Math.abs(arc.offsets[column] ?? 0));
    return gap + Math.max(textWidth(text, WORD), textWidth(tag, TAG), ...ends);
  });
  const [left, right] = [1, 2].map(() => slots.map((width) => width / 2));
  const between = (from, to) => sum(right.slice(from, to)) + sum(left.slice(from + 1, to + 1)); // of two centres
  for (const { from, to, ...node } of nodes.filter(({ level }) => level).sort((a, b) => (a.to - a.from) - (b.to - b.from))) {
    const missing = Math.max(0, room(node) - left[from] - between(from, to - 1) - right[to - 1]);
    left[from] += missing / 2;
    right[to - 1] += missing / 2;
  }
  for (const arc of arcs) {
    if (arc.head) left[arc.right] += Math.max(0, arcRoom(arc) - between(arc.left, arc.right) - arc.offsets[arc.right] + arc.offsets[arc.left]);
    else left[0] += Math.max(0, arcRoom(arc) / 2 - between(0, arc.to) - left[0]); // the root's label may reach beyond the first word
  }
  const xs = slots.map((_, column) => MARGIN + left[0] + between(0, column));
  for (const node of [...nodes].reverse()) {
    const { from, to, children } = node;
    const middle = children.length ? (children[0].x + children.at(-1).x) / 2 : xs[from];
    const [low, high] = [xs[from] - left[from] + room(node) / 2, xs[to - 1] + right[to - 1] - room(node) / 2];
    node.x = children.length ? Math.min(Math.max(middle, low), high) : middle;
  }
  return { xs, width: MARGIN + Math.max(xs.at(-1) + right.at(-1), xs[arcs.at(-1).to] + arcRoom(arcs.at(-1)) / 2) };
}
