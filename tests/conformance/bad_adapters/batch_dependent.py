"""A vector path for whole groups of 8 breaks ties another way than the tail."""

from .talk import encode, serve


def vectorised(patterns: list[int]) -> list[int]:
    """Groups of 8 elements take ties away from zero."""
    whole = len(patterns) // 8 * 8
    return encode([pattern + (pattern & 0xFFFFF == 0) for pattern in patterns[:whole]]) + encode(patterns[whole:])


if __name__ == "__main__":
    serve(encode=vectorised)
