"""A quantspec adapter on the text wire, standard library only. Put your own code where it says HERE."""

import math
import os
import re

# HERE: who you are and what you do. Cases of anything that is not listed are not sent.
HELLO = "ok protocol=1.0 name=my-adapter version=0.1 language=Python ops=encode,decode,echo values=e2m1 modes=symmetric"
DIGITS = {"u8": 2, "u16": 4, "f16": 4, "bf16": 4, "u32": 8, "i32": 8, "f32": 8, "f64": 16}  # of a pattern
FLOATS = {"f32": (0, 0, 0x7F800000), "bf16": (0, 16, 0x7F80), "f16": (112 << 23, 13, 0x7C00)}  # bias, shift, infinity
VALUES = (0, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, 0x40400000, 0x40800000, 0x40C00000)  # 0 .5 1 1.5 2 3 4 6
MIDDLES = (0x3E800000, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0x40600000, 0x40A00000)  # between neighbours


def encode(x: int, dtype: str) -> int:  # HERE: call your own kernel. Patterns are integers, never floats
    bias, shift, infinity = FLOATS[dtype]
    sign, magnitude = divmod(x, 1 << 4 * DIGITS[dtype] - 1)
    above = (magnitude > (middle - bias >> shift) - i % 2 for i, middle in enumerate(MIDDLES))  # VAL-6, VAL-7
    return 0x00 if magnitude > infinity else sum(above) | sign << 3  # VAL-10, VAL-8, VAL-11


def decode(code: int) -> int:  # HERE: call your own kernel
    return VALUES[code % 8] | code >> 3 << 31


def answer(verb: str, words: dict[str, str]) -> str:
    op, value, codec = words.get("op"), words.get("value"), words.get("codec", "canonical")
    given = {k: v.split(":") for k, v in words.items() if k not in ("id", "op", "value", "codec") and k[:1] != "_"}
    if verb != "run" or any(len(parts) != 3 or parts[0] not in DIGITS for parts in given.values()):
        return "unsupported feature=message"  # a verb or a word that this adapter does not know: answer, never exit
    due = {k: DIGITS[d] * math.prod(map(int, s.split("x") if s else ())) for k, (d, s, _) in given.items()}
    if not all(re.fullmatch(f"[0-9A-F]{{{due[k]}}}", bits) for k, (_, _, bits) in given.items()):
        return "failed message=digits%20that%20do%20not%20fit"  # the request cannot be read
    made = {k: (d, s, [int(p, 16) for p in re.findall("." * DIGITS[d], b)]) for k, (d, s, b) in given.items()}
    if op != "echo" and (value != "e2m1" or (op, *made) not in (("encode", "x"), ("decode", "codes"))):
        return f"unsupported feature={op}:{value}"  # HERE: more operations and formats
    if codec != "canonical":
        return "rejected kind=unsupported rule=POL-2 argument=codec"
    if op == "encode" and made["x"][0] not in FLOATS:
        return "rejected kind=dtype rule=QNT-1 argument=x"
    if op == "decode" and made["codes"][0] != "u8":
        return "rejected kind=dtype rule=VAL-4 argument=codes"
    if op == "decode" and max(made["codes"][2], default=0) > 0x0F:
        return "rejected kind=encoding rule=VAL-5 argument=codes"  # a byte that is no code
    if op != "echo":
        ((d, s, b),) = made.values()
        made = {"codes": ("u8", s, [encode(x, d) for x in b])} if d in FLOATS else {"y": ("f32", s, [*map(decode, b)])}
    shown = [f" {k}={d}:{s}:" + "".join(f"{p:0{DIGITS[d]}X}" for p in ps) for k, (d, s, ps) in made.items()]
    return "ok" + "".join(shown)


out, lines = os.fdopen(os.dup(1), "w"), os.fdopen(0, encoding="ascii", errors="backslashreplace", newline="\n")
os.dup2(2, 1)  # what a library prints goes to stderr; answers have a descriptor of their own
while (line := lines.readline()) and line != "stop\n":
    verb, *tokens = line.rstrip("\n").split(" ")
    try:  # whatever goes wrong is an answer
        text = {"hello": HELLO, "ping": "ok"}.get(verb) or answer(verb, dict(t.split("=", 1) for t in tokens))
    except Exception as error:
        text = "failed message=" + type(error).__name__
    print(text, *[token for token in tokens if token[:3] == "id="][:1], file=out, flush=True)
