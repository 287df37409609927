// The page in which a sentence is typed. Its address is its state: #text=...&sentence=2, and what the explorer shows of it.
import { find, leastSure, offer, say as tell } from "./made/typing.js";

const SIMD = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]);
const EXPLORER = "made/explorer.html";
const frame = find("explorer");
let asked = new URLSearchParams();
let worker = null;
let number = 0; // of the last question
const shell = fetch(EXPLORER).then((answer) => answer.text()).catch(() => "");
let shown = ""; // the address of what the frame shows

function say(text, problem = false) {
  tell(text, problem);
  find("loading").hidden = true;
  if (problem) find("answer").hidden = true; // that of an earlier sentence
}

// A page that cannot parse shows a ready picture instead.
function giveUp(text) {
  say(`${text} Below is a parse that was made before.`, true);
  frame.src = EXPLORER; // with the sentence that it was made with
  find("answer").hidden = false;
}

function ask() {
  const text = asked.get("text") ?? "";
  find("text").value = text;
  if (!text.trim()) {
    find("answer").hidden = true;
    return say("There is nothing to parse: type a sentence.");
  }
  worker ??= started();
  say("Parsing …");
  return worker.postMessage({ number: ++number, text, chosen: Number(asked.get("sentence") ?? 1) });
}

function started() {
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.addEventListener("message", ({ data }) => {
    if (data.whole) showLoading(data);
    else if (data.number !== number) return; // a later question waits
    else if (data.problem) say(data.problem, true);
    else show(data.answer);
  });
  worker.addEventListener("error", () => giveUp("The parser cannot be loaded: this copy of the book was made without it (make book, with a network, adds it)."));
  return worker;
}

function showLoading({ loaded, whole }) {
  const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
  say(loaded < whole ? `Loading the parser, once: ${megabytes(loaded)} of ${megabytes(whole)} MB` : "Starting the parser …");
  find("loading").hidden = false;
  find("loading").value = loaded / whole;
}

async function show(answer) {
  const { sentences, chosen, sure, tree, strange } = answer;
  const html = await shell;
  if (!html.includes(' id="data"')) return say("The file made/explorer.html is damaged or missing: reload the page; if that does not help, make the book again (make book).", true);
  offer(sentences, chosen);
  const unsure = leastSure(tree, sure.spans);
  const least = unsure ? `Least sure: ${unsure}.` : "By its own estimate, the parser is sure of every constituent (90 % or more). It can still be wrong.";
  find("facts").textContent = strange ? "Careful: the parser never learned this language, and its trees mean little." : tree.spans.length ? least : "";
  const state = new URLSearchParams([...asked].filter(([name]) => !["text", "sentence"].includes(name)));
  URL.revokeObjectURL(shown);
  shown = URL.createObjectURL(new Blob([filled(html, answer.data)], { type: "text/html" }));
  find("answer").hidden = false;
  frame.contentWindow.location.replace(`${shown}#${state}`);
  say("");
  remember();
}

// The explorer, which Python made for another sentence, with this one. In the sandbox of its frame it reaches nothing around it.
const filled = (html, data) => html.replace(/( id="data">).*/, (_, before) => `${before}${JSON.stringify(data).replace(/</g, "\\u003c")}</script>`);

// What is pinned in the explorer belongs to the address, too.
window.addEventListener("message", ({ source, data }) => {
  if (source !== frame.contentWindow || typeof data?.state !== "string") return;
  const fields = new URLSearchParams(data.state);
  fields.delete("sentence");
  asked = new URLSearchParams([...[...asked].filter(([name]) => ["text", "sentence"].includes(name)), ...fields]);
  history.replaceState(null, "", `#${asked}`);
});

// Keep what later visits without a network need.
const remember = () => navigator.serviceWorker?.register("service-worker.js", { updateViaCache: "none" }).then((kept) => kept.update()).catch(() => {});

function go(fields) {
  const hash = `#${new URLSearchParams(fields)}`;
  if (hash === location.hash) ask();
  else location.hash = hash;
}

function read() {
  asked = new URLSearchParams(location.hash.slice(1));
  if (asked.has("text")) ask();
  else say("Type a sentence. It is parsed in this browser: nothing leaves this machine.");
}

find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  go({ text: find("text").value });
});
find("sentence").addEventListener("change", ({ target }) => go({ text: asked.get("text"), sentence: target.value }));
window.addEventListener("hashchange", read);

if (!globalThis.WebAssembly?.validate(SIMD)) giveUp("This browser cannot run the parser: it has no WebAssembly with SIMD. Use a newer one.");
else read();
