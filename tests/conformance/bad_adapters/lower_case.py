"""Patterns in lower-case digits."""

from .talk import say, serve


def lower(line: str) -> None:
    """Digits after the last colon."""
    head, colon, digits = line.rpartition(":")
    say(f"{head}{colon}{digits.lower()}")


if __name__ == "__main__":
    serve(tell=lower)
