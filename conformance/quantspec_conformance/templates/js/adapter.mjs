// A quantspec adapter on the text wire: node, no packages. Put your own code where it says HERE.
import { writeSync } from "node:fs";

// HERE: who you are and what you do. Cases of anything that is not listed are not sent.
const HELLO =
  "ok protocol=1.0 name=my-adapter version=0.1 language=JavaScript ops=encode,decode,echo values=e2m1,e4m3 modes=symmetric";

// Mantissa bits, bias, codes of the largest finite number, of infinity, of NaN (0: none), sign bit (VAL-2, VAL-3).
const FORMATS = { // HERE: a format more is a row more, and its name among values in HELLO
  e2m1: { m: 1, bias: 1, largest: 0x07, infinity: 0, nan: 0, sign: 0x08 },
  e4m3: { m: 3, bias: 7, largest: 0x7e, infinity: 0, nan: 0x7f, sign: 0x80 },
};
const BINARY16 = { m: 10, bias: 15, largest: 0x7bff, infinity: 0x7c00, nan: 0x7e00, sign: 0x8000 }; // an input dtype

// Hexadecimal digits of a pattern, and the array that holds patterns: integers. Never a Float32Array: reading a NaN
// from one gives a number that keeps neither its sign nor its payload.
const DTYPES = {
  u8: [2, Uint8Array], u16: [4, Uint16Array], f16: [4, Uint16Array], bf16: [4, Uint16Array],
  u32: [8, Uint32Array], i32: [8, Uint32Array], f32: [8, Uint32Array], f64: [16, BigUint64Array],
};

// HERE: call your own kernel.
function encode(x, { m, bias, largest, nan, sign }) {
  const negative = x >>> 31 ? sign : 0;
  const magnitude = x & 0x7fffffff;
  if (magnitude > 0x7f800000) return nan ? negative | nan : 0; // VAL-9, VAL-10
  const field = magnitude >>> 23;
  const [exponent, least] = [Math.max(field, 1) - 127, 1 - bias];
  const significand = (magnitude & 0x7fffff) | (field ? 0x800000 : 0);
  const shift = 23 - m + Math.max(0, least - exponent);
  if (shift > 30) return negative; // far below half of the smallest number; VAL-11: zero keeps its sign
  let n = significand >>> shift;
  const rest = significand & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  if (rest > half || (rest === half && n & 1)) n += 1; // VAL-6; VAL-7: ties to the even code
  n += Math.max(0, exponent - least) << m;
  return negative | Math.min(n, largest); // VAL-8
}

// HERE: call your own kernel.
function decode(code, { m, bias, largest, infinity, sign }) {
  const negative = code & sign ? 0x80000000 : 0;
  const magnitude = code & (sign - 1);
  if (magnitude > largest) return magnitude === infinity ? (negative | 0x7f800000) >>> 0 : 0x7fc00000; // VAL-12
  if (magnitude === 0) return negative;
  let exponent = Math.max(magnitude >>> m, 1);
  let fraction = (magnitude & ((1 << m) - 1)) | (magnitude >>> m ? 1 << m : 0);
  for (; fraction >>> m === 0; exponent -= 1) fraction <<= 1; // a subnormal here is a normal binary32
  return (negative | ((exponent - bias + 127) << 23) | ((fraction << (23 - m)) & 0x7fffff)) >>> 0;
}

// QNT-1: f16 and bf16 as binary32, exactly.
function widen(x, dtype) {
  if (dtype !== "f16") return dtype === "bf16" ? (x << 16) >>> 0 : x;
  if ((x & 0x7c00) === 0x7c00) return (((x & 0x8000) << 16) | 0x7f800000 | ((x & 0x3ff) << 13)) >>> 0;
  return decode(x, BINARY16);
}

// dtype:shape:hex. null: something else; undefined: a tensor that cannot be read.
function parse(text) {
  const [, dtype, shape, hex] = /^([a-z]+[0-9]+):([^:]*):([^:]*)$/.exec(text) ?? [];
  if (!Object.hasOwn(DTYPES, dtype ?? "")) return null;
  const [digits, Bits] = DTYPES[dtype];
  const count = shape === "" ? 1 : shape.split("x").reduce((n, size) => n * (/^[0-9]+$/.test(size) ? Number(size) : NaN), 1);
  if (hex.length !== count * digits || /[^0-9A-F]/.test(hex)) return undefined;
  const bits = new Bits(count);
  for (let i = 0; i < bits.length; i++) {
    const pattern = "0x" + hex.slice(i * digits, (i + 1) * digits);
    bits[i] = digits === 16 ? BigInt(pattern) : Number(pattern);
  }
  return { dtype, shape, bits };
}

function show([name, { dtype, shape, bits }]) {
  const digits = DTYPES[dtype][0];
  const hex = Array.from(bits, (pattern) => pattern.toString(16).toUpperCase().padStart(digits, "0"));
  return ` ${name}=${dtype}:${shape}:${hex.join("")}`;
}

// One operation: the tensors that it makes, or the text of another answer.
function run({ op, value, codec }, tensors) {
  if (op === "echo") return tensors;
  const format = Object.hasOwn(FORMATS, value) ? FORMATS[value] : null;
  const source = { encode: "x", decode: "codes" }[op];
  if (!format || Object.keys(tensors).join() !== source)
    return `unsupported feature=${op}:${value}`; // HERE: more operations and formats
  if (codec !== "canonical") return "rejected kind=unsupported rule=POL-2 argument=codec";
  const { dtype, shape, bits } = tensors[source];
  if (op === "encode") {
    if (!["f32", "f16", "bf16"].includes(dtype)) return "rejected kind=dtype rule=QNT-1 argument=x";
    return { codes: { dtype: "u8", shape, bits: bits.map((x) => encode(widen(x, dtype), format)) } };
  }
  if (dtype !== "u8") return "rejected kind=dtype rule=VAL-4 argument=codes";
  if (bits.some((code) => code >= 2 * format.sign))
    return "rejected kind=encoding rule=VAL-5 argument=codes"; // a byte that is no code
  return { y: { dtype: "f32", shape, bits: Uint32Array.from(bits, (code) => decode(code, format)) } };
}

function answer(line) {
  const [verb, ...tokens] = line.split(" ");
  const words = { id: "0", op: "", value: "", codec: "canonical" };
  const tensors = {};
  let [known, read] = [true, true]; // false for a word that nobody here knows, and for a tensor that cannot be read
  for (const token of tokens) {
    const [key, text] = [token.split("=")[0], token.slice(token.indexOf("=") + 1)];
    const tensor = parse(text);
    if (key.startsWith("_")) continue;
    if (Object.hasOwn(words, key)) words[key] = text;
    else if (tensor) tensors[key] = tensor;
    else if (tensor === undefined) read = false;
    else known = false;
  }
  if (verb === "hello") return HELLO;
  if (verb === "ping") return `ok id=${words.id}`;
  if (verb === "run" && !read) return `failed message=digits%20that%20do%20not%20fit id=${words.id}`;
  if (verb !== "run" || !known) return `unsupported feature=${verb}:${words.op} id=${words.id}`;
  let made = "failed message=exception";
  try {
    made = run(words, tensors);
  } catch (error) {
    console.error(error);
  }
  return typeof made === "string" ? `${made} id=${words.id}` : `ok id=${words.id}${Object.entries(made).map(show).join("")}`;
}

function send(text) {
  const bytes = Buffer.from(text + "\n", "latin1");
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

// What a library prints belongs on stderr: node cannot point descriptor 1 elsewhere, but it can redirect its own writes.
process.stdout.write = process.stderr.write.bind(process.stderr);
let rest = [];
process.stdin.on("data", (piece) => {
  rest.push(piece);
  if (!piece.includes(10)) return;
  const lines = Buffer.concat(rest).toString("latin1").split("\n");
  rest = [Buffer.from(lines.pop(), "latin1")];
  for (const line of lines) {
    if (line === "stop") process.exit(0);
    send(answer(line));
  }
});
