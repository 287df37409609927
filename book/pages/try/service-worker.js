// The page without a network, after its first visit: one cache for each build of the book, with all of its files or none.
importScripts("made/build.js"); // sets BUILD and SUMS. A new book has others, so that the browser installs this file again.
const BOOK = `lalkit ${registration.scope} `; // other books of this server have caches, too
const KEPT = BOOK + BUILD;
const MODEL = "made/model/model.onnx";
const SUMS = new Map(self.SUMS.trim().split("\n").map((line) => line.split("  ").reverse())); // hashes by name
SUMS.set("./", SUMS.get("index.html"));

async function install() {
  const cache = await caches.open(KEPT);
  await cache.put("made/build.js", new Response(`self.PARSER = "${self.PARSER}";`, { headers: { "content-type": "text/javascript" } }));
  for (const [name, hash] of SUMS) {
    const address = name === MODEL ? `${name}?${hash}` : name; // as network.js asks for it
    const answer = (name === MODEL && (await caches.match(address))) || (await fetch(address, { cache: "no-cache" }));
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", await answer.clone().arrayBuffer()));
    if (sum.some((byte, k) => byte !== parseInt(hash.slice(2 * k, 2 * k + 2), 16))) throw new Error(`${name} is of another book`);
    await cache.put(address, answer);
  }
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
