"""Adapters on the text wire, each with one fault:  python text_wire.py FAULT [number or path].

`honest` has none. All of them echo, and decode nothing.
"""

import os
import sys
import time
from collections.abc import Callable

Lines = list[str]
IDENTITY = "ok protocol=1.0 name=faulty ops=echo\n"


def say(line: str | bytes) -> None:
    """Write to stdout at once."""
    sys.stdout.buffer.write(line.encode() if isinstance(line, str) else line)
    sys.stdout.buffer.flush()


def listen() -> dict[str, str]:
    """The next message: verb and keys. The process ends with its input, and at `stop`."""
    line = sys.stdin.readline()
    verb, *tokens = line.rstrip("\n").split(" ")
    if verb in ("", "stop"):
        sys.exit(0)
    return {"verb": verb, **dict(token.split("=", 1) for token in tokens)}


def echo(message: dict[str, str]) -> str:
    """The honest answer."""
    if message.get("op") != "echo":
        return f"unsupported id={message['id']} feature=op:{message.get('op', '')}\n"
    given = [f"{key}={value}" for key, value in message.items() if key not in ("verb", "id", "op") and ":" in value]
    return " ".join(["ok", f"id={message['id']}", *given]) + "\n"


def serve(spoil: Callable[[dict[str, str], str], str | bytes | None], identity: str = IDENTITY) -> None:
    """Answer everything, through the fault."""
    listen()
    say(identity)
    while True:
        message = listen()
        answer = spoil(message, echo(message))
        if answer is not None:
            say(answer)


def crash_at(number: int) -> Callable[[dict[str, str], str], str]:
    """Ends at the n-th request of a process."""
    count = 0

    def spoil(message: dict[str, str], answer: str) -> str:
        nonlocal count
        count += 1
        if count == number:
            print("about to crash", file=sys.stderr, flush=True)
            os._exit(7)
        return answer

    return spoil


def first_then_crash(path: str) -> None:
    """Says another name when it is started a second time."""
    again = os.path.exists(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write("here before")
    serve(crash_at(1), IDENTITY.replace("faulty", "another") if again else IDENTITY)


def noisy(message: dict[str, str], answer: str) -> str:
    """Prints before an answer."""
    say("compiling kernel 3 of 9 ...\n")
    return answer


def noise_first() -> None:
    """Prints before its identity, as a runtime does that is loaded first."""
    say("Hello from the runtime, version 3\n")
    serve(lambda message, answer: answer)


def hang(message: dict[str, str], answer: str) -> None:
    """Does not answer."""
    time.sleep(600)


def hang_with_helper(message: dict[str, str], answer: str) -> None:
    """Does not answer, and neither does its own child, whose number it says."""
    helper = os.fork()
    if helper == 0:
        time.sleep(600)
        os._exit(0)
    print(f"helper {helper}", file=sys.stderr, flush=True)
    time.sleep(600)


def orphan(message: dict[str, str], answer: str) -> None:
    """Ends, while a child of its own holds stdout open."""
    if os.fork() == 0:
        time.sleep(600)
    os._exit(3)


def silent() -> None:
    """Never says who it is."""
    time.sleep(600)


def flood(message: dict[str, str], answer: str) -> str:
    """Fills stderr before it answers: lines, and one without an end."""
    for number in range(20000):
        sys.stderr.write(f"line {number} {'x' * 100}\n")
    sys.stderr.write("y" * 3_000_000)
    sys.stderr.flush()
    return answer


def random_answers(message: dict[str, str], answer: str) -> str:
    """Answers differently each time."""
    return f"ok id={message['id']} x=u8:4:{os.urandom(4).hex().upper()}\n"


def through_floats(message: dict[str, str], answer: str) -> str:
    """Quiets signaling NaNs, as conversion to a wider float and back does."""
    quiet = {"f32": (8, 0x7F800000, 0x00400000), "f16": (4, 0x7C00, 0x0200), "bf16": (4, 0x7F80, 0x0040)}
    tokens = answer.rstrip("\n").split(" ")
    for place, token in enumerate(tokens):
        head, _, digits = token.rpartition(":")
        dtype = head.partition("=")[2].partition(":")[0]
        if dtype not in quiet:
            continue
        width, exponent, bit = quiet[dtype]
        codes = [int(digits[i : i + width], 16) for i in range(0, len(digits), width)]
        sign = 1 << (4 * width - 1)
        codes = [code | bit if code & ~sign > exponent else code for code in codes]
        tokens[place] = f"{head}:" + "".join(f"{code:0{width}X}" for code in codes)
    return " ".join(tokens) + "\n"


def endless(message: dict[str, str], answer: str) -> str:
    """Goes on answering what nobody asked."""
    for number in range(1000):
        say(f"ok id={10_000 + number}\n")
    return answer


FAULTS: dict[str, Callable[[str], None]] = {
    "honest": lambda _: serve(lambda message, answer: answer),
    "crash-at": lambda argument: serve(crash_at(int(argument))),
    "another-after-crash": first_then_crash,
    "exit-in-hello": lambda _: sys.exit("no device"),
    "garbled-exit": lambda _: say("ok protocol=1.0 na"),
    "silent": lambda _: silent(),
    "hang": lambda _: serve(hang),
    "hang-with-helper": lambda _: serve(hang_with_helper),
    "orphan": lambda _: serve(orphan),
    "noise-first": lambda _: noise_first(),
    "noise": lambda _: serve(noisy),
    "no-text": lambda _: serve(lambda message, answer: b"ok id=" + message["id"].encode() + b" text=\xff\xfe\n"),
    "no-utf-8": lambda _: serve(lambda message, answer: f"failed id={message['id']} message=%FF%FE\n"),
    "wrong-shape": lambda _: serve(lambda message, answer: f"ok id={message['id']} x=u8:5:01020304\n"),
    "other-shape": lambda _: serve(lambda message, answer: f"ok id={message['id']} x=u8:2x2:01020304\n"),
    "huge-shape": lambda _: serve(lambda message, answer: f"ok id={message['id']} x=u8:4294967296x4294967297:01\n"),
    "wrong-id": lambda _: serve(lambda message, answer: answer.replace(f"id={message['id']}", "id=999")),
    "no-id": lambda _: serve(lambda message, answer: answer.replace(f" id={message['id']}", "")),
    "unknown-verb": lambda _: serve(lambda message, answer: f"maybe id={message['id']}\n"),
    "unknown-kind": lambda _: serve(lambda message, answer: f"rejected id={message['id']} kind=mood\n"),
    "claims-all": lambda _: serve(lambda message, answer: answer, "ok protocol=1.0 name=faulty\n"),
    "random": lambda _: serve(random_answers),
    "flood": lambda _: serve(flood),
    "floats": lambda _: serve(through_floats),
    "unasked": lambda _: serve(endless),
    "major": lambda _: serve(lambda message, answer: answer, "ok protocol=2.0 name=faulty\n"),
    "later-minor": lambda _: serve(lambda message, answer: answer, "ok protocol=1.9 name=faulty colour=red\n"),
    "unknown-field": lambda _: serve(lambda message, answer: answer, "ok protocol=1.0 name=faulty colour=red\n"),
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "")
