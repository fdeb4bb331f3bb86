"""Ends with a traceback where more than a few elements come."""

from .talk import encode, serve


def limited(patterns: list[int]) -> list[int]:
    """A buffer that is too small."""
    if len(patterns) > 40:
        raise MemoryError("no room for so many elements")
    return encode(patterns)


if __name__ == "__main__":
    serve(encode=limited)
