// The page without a network, after its first visit: one cache for each build of the book, with all of its files or none.
importScripts("made/build.js"); // sets BUILD. A new book has another one, so that the browser installs this file again.
const BOOK = `lalkit ${registration.scope} `; // other books of this server have caches, too
const KEPT = BOOK + BUILD;
const MODEL = "made/model/model.onnx";
const FILES = [
  "./", "index.html", "page.js", "worker.js", "network.js", "tokens.js", "wordpiece.js", "parse.js", "chart.js",
  "decode.js", "sums.js", "made/build.js", "made/playground.css", "made/typing.js", "made/explorer.html", "made/model/parser.json",
  "made/model/tokenizer.json", "made/ort/ort.wasm.bundle.min.mjs", "made/ort/ort-wasm-simd-threaded.wasm",
];

async function install() {
  const cache = await caches.open(KEPT);
  await cache.addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })));
  const { files } = await (await cache.match("made/model/parser.json")).json();
  const model = `${MODEL}?${files["model.onnx"].sha256}`; // as network.js asks for it
  const old = await caches.match(model);
  await (old ? cache.put(model, old) : cache.add(model));
  await self.skipWaiting();
}

async function activate() {
  for (const name of await caches.keys()) if (name.startsWith(BOOK) && name !== KEPT) await caches.delete(name);
  await self.clients.claim();
}

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(activate()));

// The server first, so that a new book is seen at once; what it does not answer comes from the cache. The model: from the cache first.
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const isModel = request.url.includes(`${MODEL}?`);
  const kept = () => caches.open(KEPT).then((cache) => cache.match(request, { ignoreSearch: !isModel }));
  // A kept answer of an old book is asked about again.
  const fresh = request.mode !== "navigate" && request.cache === "default" ? { cache: "no-cache" } : {};
  const loaded = async () => fetch(request, fresh).catch(async () => (await kept()) ?? Response.error());
  if (request.method === "GET") event.respondWith(isModel && request.cache !== "reload" ? kept().then((found) => found ?? loaded()) : loaded());
});
