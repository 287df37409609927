// The network: its files, checked, and one sentence through it. It runs in a worker.
import "./made/build.js"; // sets PARSER: the hash of parser.json, which has the hashes of the other files
import * as ort from "./made/ort/ort.wasm.bundle.min.mjs";
import { wordPieces } from "./wordpiece.js";
import { tokenPattern } from "./tokens.js";

const FOLDER = new URL("./made/", import.meta.url);
const WASM = "ort/ort-wasm-simd-threaded.wasm";
const FORMAT = "lalkit-onnx-1"; // of parser.json: lalkit/training/export.py

const AGAIN = "Reload the page; if that does not help, make the book again (make book).";

export class Problem extends Error {} // what a reader is told, in one line

// report(loaded, whole): bytes, while they arrive. Where a browser checks no hashes, a damaged file is found when it is used.
export const load = (report) => loaded(report).catch((error) => {
  throw error instanceof Problem ? error : new Problem(`A file of the parser is damaged (${error.message}). ${AGAIN}`);
});

async function loaded(report) {
  const parser = json(await checked("model/parser.json", { sha256: self.PARSER }));
  if (parser.format !== FORMAT) throw new Problem(`This page reads a parser of the format ${FORMAT}, and this one has ${parser.format}. Make the book again (make book).`);
  const { "tokenizer.json": table, "model.onnx": network } = parser.files;
  const vocabulary = json(await checked("model/tokenizer.json", table));
  const model = await checked("model/model.onnx", network, (loaded) => report(loaded, network.bytes));
  ort.env.wasm.numThreads = 1; // more need headers that a plain file server does not send
  ort.env.wasm.wasmPaths = { wasm: new URL(WASM, FOLDER).href };
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] }).catch((error) => {
    throw new Problem(`The parser does not start here: perhaps this browser has too little memory. (${error.message})`);
  });
  return { parser, session, table: new Map(Object.entries(vocabulary.model.vocab)), pattern: tokenPattern(parser.words) };
}

const json = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

// The bytes of a file with this hash, which is a part of its address. What has another hash is fetched once more, past all caches.
async function checked(name, { sha256: hash, bytes: size = 1e6 }, report = () => {}) {
  for (const cache of ["default", "reload"]) {
    const answer = await fetch(new URL(`${name}?${hash}`, FOLDER), { cache }).catch(() => null);
    if (!answer?.ok) throw new Problem(`The file ${name} cannot be loaded${answer ? ` (${answer.status})` : ""}: check the connection, and reload the page.`);
    const bytes = await read(answer, size, report);
    if (bytes && (await hasHash(bytes, hash))) return bytes;
  }
  throw new Problem(`The file ${name} is damaged or of another book: it has another check sum than it should have, twice. ${AGAIN}`);
}

// Browsers compute hashes only for pages from https or this machine. Elsewhere nothing is checked.
async function hasHash(bytes, hash) {
  const sum = await globalThis.crypto.subtle?.digest("SHA-256", bytes);
  return !sum || [...new Uint8Array(sum)].map((byte) => byte.toString(16).padStart(2, "0")).join("") === hash;
}

// The body, or null if it is cut off or longer than it should be.
async function read(answer, size, report) {
  const bytes = new Uint8Array(size);
  const reader = answer.body.getReader();
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ value: { length: Infinity } }));
    if (done) return bytes.subarray(0, loaded);
    if (loaded + value.length > size) return null;
    bytes.set(value, loaded);
    report(loaded += value.length);
  }
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
