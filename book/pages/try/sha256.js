// SHA-256 of bytes, in hexadecimal. Browsers have it only for pages from https or this machine; the loop is for all others.
export async function sha256(bytes) {
  const sum = globalThis.crypto?.subtle ? new Uint32Array(await crypto.subtle.digest("SHA-256", bytes)).map(swapped) : byHand(bytes);
  return [...sum].map((word) => word.toString(16).padStart(8, "0")).join("");
}

const swapped = (word) => ((word >>> 24) | ((word >>> 8) & 0xff00) | ((word & 0xff00) << 8) | (word << 24)) >>> 0;
const fraction = (root) => Math.floor((root % 1) * 2 ** 32);
const PRIMES = [];
for (let k = 2; PRIMES.length < 64; k++) if (PRIMES.every((prime) => k % prime)) PRIMES.push(k);
const K = Uint32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));
const turn = (x, by) => (x >>> by) | (x << (32 - by));

export function byHand(bytes) {
  const sum = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
  const whole = bytes.length - (bytes.length % 64);
  const rest = new Uint8Array(bytes.length % 64 < 56 ? 64 : 128);
  rest.set(bytes.subarray(whole));
  rest[bytes.length % 64] = 0x80;
  new DataView(rest.buffer).setBigUint64(rest.length - 8, BigInt(bytes.length) * 8n);
  const w = new Uint32Array(64);
  const block = (view, at) => {
    for (let t = 0; t < 16; t++) w[t] = view.getUint32(at + 4 * t);
    for (let t = 16; t < 64; t++) {
      const [x, y] = [w[t - 15], w[t - 2]];
      w[t] = w[t - 16] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + w[t - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10));
    }
    let [a, b, c, d, e, f, g, h] = sum;
    for (let t = 0; t < 64; t++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0;
      d = c; c = b; b = a; a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => { sum[i] += value; });
  };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < whole; at += 64) block(view, at);
  for (let at = 0; at < rest.length; at += 64) block(new DataView(rest.buffer), at);
  return sum;
}
