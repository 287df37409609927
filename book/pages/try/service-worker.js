// The page without a network, after its first visit. The model has a cache of its own (network.js), by its hash.
const KEPT = "lalkit-page";
const FILES = [
  "index.html", "page.js", "page.css", "worker.js", "network.js", "sha256.js", "tokens.js", "wordpiece.js", "parse.js", "chart.js",
  "decode.js", "sums.js", "picture.js", "layout.js", "svg.js", "made/explorer.html", "made/model/parser.json", "made/model/tokenizer.json",
  "made/ort/ort.wasm.bundle.min.mjs", "made/ort/ort-wasm-simd-threaded.wasm",
];

self.addEventListener("install", (event) => event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(FILES)).then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

// The server first, so that a new book is seen at once; what it does not answer comes from the cache.
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || event.request.url.endsWith("model.onnx")) return;
  const kept = () => caches.open(KEPT).then((cache) => cache.match(event.request, { ignoreSearch: true }));
  event.respondWith(fetch(event.request).catch(async () => (await kept()) ?? Response.error()));
});
