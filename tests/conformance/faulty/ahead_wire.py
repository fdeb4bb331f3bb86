"""Adapters on the text wire that allow several requests in flight, each with one fault:  python ahead_wire.py FAULT NUMBER LOG.

NUMBER is what it allows. LOG is a file to which it writes the note of every request that it reads, a line each, and `start`.
A fault strikes at the request whose word `note` is `bad`; `gather` has none, and answers nothing before NUMBER requests came.
"""

import os
import sys
import time
from collections.abc import Callable

Message = dict[str, str]


def say(line: str) -> None:
    """Write to stdout at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def listen(log: str) -> Message:
    """The next message, written to the log. The process ends with its input, and at `stop`."""
    verb, *tokens = sys.stdin.readline().rstrip("\n").split(" ")
    if verb in ("", "stop"):
        sys.exit(0)
    message = {"verb": verb, **dict(token.split("=", 1) for token in tokens)}
    with open(log, "a", encoding="utf-8") as file:
        file.write(message.get("note", "start" if verb == "hello" else "?") + "\n")
    return message


def echo(message: Message) -> str:
    """The honest answer."""
    given = [f"{key}={value}" for key, value in message.items() if ":" in value]
    return " ".join(["ok", f"id={message['id']}", *given])


def crash(message: Message, log: str) -> None:
    """Ends."""
    print("the note was bad", file=sys.stderr, flush=True)
    os._exit(9)


def hang(message: Message, log: str) -> None:
    """Does not answer."""
    time.sleep(600)


def garbage(message: Message, log: str) -> None:
    """Prints what is no answer."""
    say("warming up the kernels")
    say(echo(message))


def swap(message: Message, log: str) -> None:
    """Answers the next request first."""
    say(echo(listen(log)))
    say(echo(message))


def extra(message: Message, log: str) -> None:
    """Answers twice."""
    say(echo(message))
    say(echo(message))


FAULTS: dict[str, Callable[[Message, str], None]] = {
    "crash": crash,
    "hang": hang,
    "garbage": garbage,
    "swap": swap,
    "extra": extra,
}


def gather(number: int, log: str) -> None:
    """Answers so many requests at a time."""
    while True:
        for message in [listen(log) for _ in range(number)]:
            say(echo(message))


def main(fault: str, number: int, log: str) -> None:
    """Say who it is, then answer everything but what is bad."""
    listen(log)
    say(f"ok protocol=1.0 name=ahead ops=echo{f' max_in_flight={number}' if number else ''}")
    if fault == "gather":
        gather(number, log)
    while True:
        message = listen(log)
        if message.get("note") == "bad" and fault in FAULTS:
            FAULTS[fault](message, log)
        else:
            say(echo(message))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
