// The network: its files, checked and kept for later visits, and one sentence through it. It runs in a worker.
import * as ort from "./made/ort/ort.wasm.bundle.min.mjs";
import { sha256 } from "./sha256.js";
import { wordPieces } from "./wordpiece.js";
import { tokenPattern } from "./tokens.js";

const FOLDER = new URL("./made/", import.meta.url);
const WASM = "ort/ort-wasm-simd-threaded.wasm";
const KEPT = "lalkit-model"; // a cache of the browser

export class Problem extends Error {} // what a reader is told, in one line

// report(loaded, whole): bytes, while they arrive.
export async function load(report) {
  const parser = await (await got("model/parser.json")).json();
  const { sha256: hash, bytes: size } = parser.files["model.onnx"];
  const vocabulary = await (await got("model/tokenizer.json")).json();
  const model = await checked("model/model.onnx", hash, size, (loaded) => report(loaded, size));
  ort.env.wasm.numThreads = 1; // more need headers that a plain file server does not send
  ort.env.wasm.wasmPaths = { wasm: new URL(WASM, FOLDER).href };
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] }).catch((error) => {
    throw new Problem(`The parser does not start here: perhaps this browser has too little memory. (${error.message})`);
  });
  return { parser, session, table: new Map(Object.entries(vocabulary.model.vocab)), pattern: tokenPattern(parser.words) };
}

async function got(name, options) {
  const answer = await fetch(new URL(name, FOLDER), options).catch(() => null);
  if (!answer?.ok) throw new Problem(`The file ${name} cannot be loaded${answer ? ` (${answer.status})` : ""}: check the connection, and reload the page.`);
  return answer;
}

// The bytes of a file with this hash: from the cache, else from the server. What has another hash is fetched once more.
async function checked(name, hash, size, report) {
  const cache = await globalThis.caches?.open(KEPT).catch(() => null);
  const key = new URL(`${name}?${hash}`, FOLDER);
  const tries = [() => cache?.match(key), () => got(name), () => got(name, { cache: "reload" })];
  for (const [number, answer] of tries.entries()) {
    const found = await answer();
    if (!found) continue;
    const bytes = await read(found, size, report);
    if (bytes && (await sha256(bytes)) === hash) {
      if (number) await keep(cache, key, bytes);
      return bytes;
    }
    await cache?.delete(key);
  }
  throw new Problem("The file of the parser is damaged: it has another check sum than it should have, twice. Make the book again (make book).");
}

// The body, or null if it is shorter or longer than it should be.
async function read(answer, size, report) {
  const bytes = new Uint8Array(size);
  const reader = answer.body.getReader();
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    if (done) return loaded === size ? bytes : null;
    if (loaded + value.length > size) return null;
    bytes.set(value, loaded);
    report(loaded += value.length);
  }
}

// Other versions of the model make room for this one. Where there is no room, the page works without the cache.
async function keep(cache, key, bytes) {
  try {
    for (const old of (await cache?.keys()) ?? []) await cache.delete(old);
    await cache?.put(key, new Response(bytes));
  } catch { /* it is fetched again next time */ }
}

// The numbers of the network for the words of one sentence, as lalkit/export.py describes them.
export async function run({ parser, session, table }, words) {
  const pieces = words.map((word) => wordPieces(word, table));
  const ids = [...parser.before, ...pieces.flat(), ...parser.after];
  if (ids.length > parser.longest) throw new Problem(`This sentence has ${ids.length} pieces of words; the parser reads at most ${parser.longest}. Shorten it.`);
  let end = parser.before.length - 1;
  const last = [0, ...pieces.map((piece) => (end += piece.length)), ids.length - 1];
  const whole = (numbers) => BigInt64Array.from(numbers, BigInt);
  const output = await session.run({
    subwords: new ort.Tensor("int64", whole(ids), [1, ids.length]), last: new ort.Tensor("int64", whole(last), [last.length]),
  });
  return Object.fromEntries(Object.entries(output).map(([name, tensor]) => [name, tensor.data]));
}
