"""A small good adapter of e2m1, to be made bad by handing it other parts."""

import math
import sys
from collections.abc import Callable

Shaped = tuple[str, str, list[int]]  # dtype, shape, patterns

DIGITS = {"u8": 2, "u16": 4, "f16": 4, "bf16": 4, "u32": 8, "f32": 8}
IDENTITY = "protocol=1.0 name=bad version=1 language=Python ops=encode,decode,echo values=e2m1 modes=symmetric"
VALUES = (0, 0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, 0x40400000, 0x40800000, 0x40C00000)
MIDDLES = (0x3E800000, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0x40600000, 0x40A00000)


def say(text: str) -> None:
    """A line on stdout."""
    print(text, flush=True)


def encode(patterns: list[int]) -> list[int]:
    """Codes of e2m1."""
    return [
        0
        if x & 0x7FFFFFFF > 0x7F800000
        else sum(x & 0x7FFFFFFF > m - i % 2 for i, m in enumerate(MIDDLES)) | x >> 31 << 3
        for x in patterns
    ]


def decode(codes: list[int]) -> list[int]:
    """Numbers of codes of e2m1."""
    return [VALUES[code % 8] | code >> 3 << 31 for code in codes]


def same(tensor: Shaped) -> Shaped:
    """What echo does to a tensor."""
    return tensor


def nothing(line: str) -> None:
    """What is done besides."""


def serve(
    *,
    identity: str = IDENTITY,
    encode: Callable[[list[int]], list[int]] = encode,
    echo: Callable[[Shaped], Shaped] = same,
    unknown: Callable[[str], None] = lambda line: say(f"unsupported {line} feature=unknown"),
    before: Callable[[str], None] = nothing,
    after: Callable[[str], None] = nothing,
    stop: Callable[[], None] = lambda: sys.exit(0),
    unread: Callable[[str], None] = lambda line: say(f"failed {line} message=digits"),
    tell: Callable[[str], None] = say,
    lacks: str = "",
) -> None:
    """Answer lines; each part can be replaced by one that misbehaves."""
    for line in sys.stdin:
        verb, *tokens = line.split()
        words = dict(token.split("=", 1) for token in tokens)
        number, op = f"id={words.pop('id', '')}", words.pop("op", "")
        if verb == "stop":
            stop()
            continue
        before(verb)
        if verb == "hello":
            say(f"ok {identity}")
        elif verb == "ping":
            say(f"ok {number}")
        elif verb != "run" or op not in ("encode", "decode", "echo"):
            unknown(number)
        else:
            value = words.pop("value", "")
            tensors = {name: _parsed(text) for name, text in words.items()}
            if not all(map(_whole, tensors.values())):
                unread(number)
            elif f"{op}:{value}" == lacks:
                unknown(number)
            else:
                tell(f"ok {number}{_made(op, tensors, encode, echo)}" if _legal(tensors) else _refusal(number))
        after(verb)


def _parsed(text: str) -> Shaped:
    dtype, shape, digits = text.split(":")
    width = DIGITS[dtype]
    return dtype, shape, [int(digits[i : i + width], 16) for i in range(0, len(digits), width)]


def _whole(tensor: Shaped) -> bool:
    return len(tensor[2]) == math.prod(int(size) for size in tensor[1].split("x") if size)


def _legal(tensors: dict[str, Shaped]) -> bool:
    return max(tensors["codes"][2], default=0) < 16 if "codes" in tensors else True


def _refusal(number: str) -> str:
    return f"rejected {number} kind=encoding rule=VAL-5 argument=codes"


def _made(
    op: str,
    tensors: dict[str, Shaped],
    encode: Callable[[list[int]], list[int]],
    echo: Callable[[Shaped], Shaped],
) -> str:
    if op == "echo":
        made = {name: echo(tensor) for name, tensor in tensors.items()}
    elif op == "encode":
        made = {"codes": ("u8", tensors["x"][1], encode(tensors["x"][2]))}
    else:
        made = {"y": ("f32", tensors["codes"][1], decode(tensors["codes"][2]))}
    return "".join(
        f" {name}={dtype}:{shape}:" + "".join(f"{pattern:0{DIGITS[dtype]}X}" for pattern in patterns)
        for name, (dtype, shape, patterns) in made.items()
    )
