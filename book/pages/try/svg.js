// SVG as strings: lalkit/draw/svg.py in JavaScript. Every text is escaped here, so that nothing typed becomes markup.
export const [BLACK, GREY, BLUE, VERMILION, LINE] = ["#000000", "#595959", "#0072B2", "#B34700", "#8C8C8C"];
const LONGEST = 32; // a longer word is cut to this many characters; its tooltip has all of it

// Widths of characters in em.
const WIDTHS = [["ijl.,:;'`|!Iíìîï·", 0.32], ['frt()[]{}-/\\" *', 0.42], ["mwMWQO%@&GD—…œæ", 0.95]];
const WIDE = /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d08}\u{1b000}-\u{1b2fb}\u{20000}-\u{3fffd}]|(?!\p{Regional_Indicator})\p{Emoji_Presentation}/u;
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export const escape = (text) => text.replace(NOT_XML, "\ufffd").replace(/[&<>"]/g, (sign) => ESCAPES[sign]);

// One element. Attributes are written in their order, numbers by `number`; null leaves one out. content: markup, or null.
export function element(tag, attributes, content = null) {
  const given = Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined);
  const written = given.map(([name, value]) => ` ${name}="${typeof value === "string" ? escape(value) : number(value)}"`).join("");
  return content === null ? `<${tag}${written}/>` : `<${tag}${written}>${content}</${tag}>`;
}

// Text that is centred at x and has its baseline at y. tip: shown where a pointer rests.
export function text(x, y, string, size, { colour = BLACK, bold = false, tip = "", ...more } = {}) {
  const title = tip ? element("title", {}, escape(tip)) : "";
  const look = { x, y, "font-size": size, fill: colour, "font-weight": bold ? "bold" : null, "text-anchor": "middle" };
  return element("text", { ...look, ...more }, title + escape(string));
}

export const path = (d, { colour = LINE, width = 1.2, kind = "", ...more } = {}) =>
  element("path", { class: kind || null, d, fill: "none", stroke: colour, "stroke-width": width, ...more });

// At most one decimal, as Python writes it: a half goes to the even digit.
export function number(value) {
  const half = Math.abs(4 * value) % 2 === 1;
  const rounded = half ? (2 * Math.round(5 * value)) / 10 : value;
  return rounded.toFixed(1).replace(/\.0$/, "");
}

export const shorten = (word) => ([...word].length <= LONGEST ? word : `${[...word].slice(0, LONGEST - 1).join("")}…`);

// The width of a text in a sans-serif font, rather too large than too small.
export const textWidth = (string, size) => size * [...string].reduce((sum, character) => sum + em(character), 0);

function em(character) {
  if (/[\p{Mn}\p{Me}\p{Cf}]/u.test(character)) return 0;
  if (WIDE.test(character)) return 1.05;
  const usual = /\p{Uppercase}/u.test(character) ? 0.74 : 0.6;
  return WIDTHS.find(([characters]) => characters.includes(character))?.[1] ?? usual;
}
