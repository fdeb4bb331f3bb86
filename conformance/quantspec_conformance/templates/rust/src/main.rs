//! A quantspec adapter on the text wire: std only. Put your own code where it says HERE.

use std::{fs::File, io::{self, BufRead, Write}, os::fd::FromRawFd};

/// HERE: who you are and what you do. Cases of anything that is not listed are not sent.
const HELLO: &str = "ok protocol=1.0 name=my-adapter version=0.1 language=Rust ops=encode,decode,echo \
                     values=e2m1,e4m3 modes=symmetric";

/// Hexadecimal digits of a pattern.
const DTYPES: [(&str, usize); 8] =
    [("u8", 2), ("u16", 4), ("f16", 4), ("bf16", 4), ("u32", 8), ("i32", 8), ("f32", 8), ("f64", 16)];

/// Mantissa bits, bias, codes of the largest finite number, of infinity, of NaN (0: none), sign bit (VAL-2, VAL-3).
type Format = (i32, i32, u64, u64, u64, u64);
/// HERE: a format more is a row more, and its name among values in HELLO.
const FORMATS: &[(&str, Format)] = &[
    ("e2m1", (1, 1, 0x07, 0, 0, 0x08)),
    ("e4m3", (3, 7, 0x7E, 0, 0x7F, 0x80)),
];
const BINARY16: Format = (10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x8000); // an input dtype, no value format

/// Patterns are integers and never pass through f32 or f64: a host may quiet a NaN or flush a subnormal.
struct Tensor<'a> { name: &'a str, dtype: &'a str, shape: &'a str, bits: Vec<u64> }

/// HERE: call your own kernel.
fn encode(x: u64, (m, bias, largest, _, nan, sign_bit): Format) -> u64 {
    let sign = if x >> 31 == 1 { sign_bit } else { 0 };
    let magnitude = x & 0x7FFF_FFFF;
    if magnitude > 0x7F80_0000 {
        return if nan > 0 { sign | nan } else { 0 }; // VAL-9, VAL-10
    }
    let field = (magnitude >> 23) as i32;
    let (exponent, least) = (field.max(1) - 127, 1 - bias);
    let significand = magnitude & 0x7F_FFFF | if field > 0 { 0x80_0000 } else { 0 };
    let shift = (23 - m + (least - exponent).max(0)).min(40); // at 40 all of it is below half of the smallest number
    let (mut n, rest, half) = (significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1));
    n += (rest > half || rest == half && n & 1 == 1) as u64; // VAL-6; VAL-7: ties to the even code
    n += ((exponent - least).max(0) as u64) << m;
    sign | n.min(largest) // VAL-8; VAL-11: zero keeps its sign
}

/// HERE: call your own kernel.
fn decode(code: u64, (m, bias, largest, infinity, _, sign_bit): Format) -> u64 {
    let (sign, magnitude) = (if code & sign_bit > 0 { 0x8000_0000 } else { 0 }, code & (sign_bit - 1));
    if magnitude == 0 || magnitude > largest {
        let special = if magnitude == infinity { sign | 0x7F80_0000 } else { 0x7FC0_0000 }; // VAL-12
        return if magnitude == 0 { sign } else { special };
    }
    let exponent = (magnitude >> m).max(1) as i32;
    let fraction = magnitude & ((1 << m) - 1) | if magnitude >> m > 0 { 1 << m } else { 0 };
    let up = m - fraction.ilog2() as i32; // a subnormal here is a normal binary32
    sign | ((exponent - up - bias + 127) as u64) << 23 | fraction << (23 - m + up) & 0x7F_FFFF
}

/// QNT-1: f16 and bf16 as binary32, exactly.
fn widen(x: u64, dtype: &str) -> u64 {
    match dtype {
        "bf16" => x << 16,
        "f16" if x & 0x7C00 == 0x7C00 => (x & 0x8000) << 16 | 0x7F80_0000 | (x & 0x3FF) << 13,
        "f16" => decode(x, BINARY16),
        _ => x,
    }
}

fn digits(dtype: &str) -> Option<usize> {
    DTYPES.iter().find(|(name, _)| *name == dtype).map(|(_, digits)| *digits)
}

/// dtype:shape:hex. None: something else; Some(None): a tensor that cannot be read.
fn parse<'a>(name: &'a str, text: &'a str) -> Option<Option<Tensor<'a>>> {
    let [dtype, shape, hex] = text.split(':').collect::<Vec<_>>()[..] else { return None };
    let digits = digits(dtype)?;
    let mut sizes = shape.split('x').filter(|_| !shape.is_empty()).map(|size| size.parse().ok());
    let length = sizes.try_fold(digits, |n, size| n.checked_mul(size?));
    if length != Some(hex.len()) || !hex.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b)) {
        return Some(None);
    }
    let pattern = |chunk| u64::from_str_radix(std::str::from_utf8(chunk).ok()?, 16).ok();
    let bits = hex.as_bytes().chunks(digits).map(pattern).collect::<Option<Vec<u64>>>();
    Some(bits.map(|bits| Tensor { name, dtype, shape, bits }))
}

fn show(tensor: &Tensor) -> String {
    let width = digits(tensor.dtype).unwrap_or(2);
    let hex: String = tensor.bits.iter().map(|pattern| format!("{pattern:0width$X}")).collect();
    format!(" {}={}:{}:{hex}", tensor.name, tensor.dtype, tensor.shape)
}

/// One operation: the tensors that it makes, or an answer without any.
fn run<'a>(op: &str, value: &str, codec: &str, tensors: Vec<Tensor<'a>>) -> Result<Vec<Tensor<'a>>, String> {
    let lacks = || format!("unsupported feature={op}:{value}"); // HERE: more operations and formats; f16, bf16 (QNT-1)
    let f = FORMATS.iter().find(|(name, _)| *name == value).ok_or_else(lacks)?.1;
    let [Tensor { name, dtype, shape, bits }] = &tensors[..] else { return Err(lacks()) };
    let made = |name, dtype, bits| Ok(vec![Tensor { name, dtype, shape, bits }]);
    let rejected = |why: &str| Err(format!("rejected {why}"));
    match (op, *name, *dtype) {
        ("encode", "x", _) if codec != "canonical" => rejected("kind=unsupported rule=POL-2 argument=codec"),
        ("encode", "x", "f32" | "f16" | "bf16") => {
            made("codes", "u8", bits.iter().map(|x| encode(widen(*x, dtype), f)).collect())
        }
        ("encode", "x", _) => rejected("kind=dtype rule=QNT-1 argument=x"),
        ("decode", "codes", "u8") if bits.iter().all(|code| *code < 2 * f.5) => {
            made("y", "f32", bits.iter().map(|code| decode(*code, f)).collect())
        }
        ("decode", "codes", "u8") => rejected("kind=encoding rule=VAL-5 argument=codes"), // a byte that is no code
        ("decode", "codes", _) => rejected("kind=dtype rule=VAL-4 argument=codes"),
        _ => Err(lacks()),
    }
}

/// Every message has an answer, also one that nobody here knows: never exit.
fn answer(line: &str) -> String {
    let mut tokens = line.split(' ');
    let verb = tokens.next().unwrap_or("");
    let (mut id, mut op, mut value, mut codec, mut tensors, mut known, mut read) = ("0", "", "", "canonical", vec![], true, true);
    for (key, text) in tokens.map(|token| token.split_once('=').unwrap_or((token, ""))).filter(|(key, _)| !key.starts_with('_')) {
        match (key, parse(key, text)) {
            ("id", _) => id = text,
            ("op", _) => op = text,
            ("value", _) => value = text,
            ("codec", _) => codec = text,
            (_, Some(Some(tensor))) => tensors.push(tensor),
            (_, Some(None)) => read = false,
            _ => known = false,
        }
    }
    match verb {
        "hello" => HELLO.to_string(),
        "ping" => format!("ok id={id}"),
        "run" if !read => format!("failed id={id} message=digits%20that%20do%20not%20fit"),
        "run" if known => match if op == "echo" { Ok(tensors) } else { run(op, value, codec, tensors) } {
            Ok(made) => made.iter().fold(format!("ok id={id}"), |line, t| line + &show(t)),
            Err(text) => format!("{text} id={id}"),
        },
        _ => format!("unsupported feature={verb}:{op} id={id}"),
    }
}

extern "C" { fn dup(descriptor: i32) -> i32; fn dup2(from: i32, to: i32) -> i32; }

fn main() -> io::Result<()> {
    let mut out = unsafe { File::from_raw_fd(dup(1)) }; // answers have a descriptor of their own;
    unsafe { dup2(2, 1) }; // what a library prints goes to stderr
    let mut line = Vec::new();
    while io::stdin().lock().read_until(b'\n', &mut line)? > 0 && line != b"stop\n" {
        out.write_all((answer(String::from_utf8_lossy(&line).trim_end_matches('\n')) + "\n").as_bytes())?;
        line.clear();
    }
    Ok(())
}
