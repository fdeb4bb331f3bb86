"""Every second encode takes ties another way: state stays from one request to the next."""

import itertools

from .talk import encode, serve

count = itertools.count()


def stateful(patterns: list[int]) -> list[int]:
    """Ties away from zero every second time."""
    odd = next(count) % 2
    return encode([pattern + (odd and pattern & 0xFFFFF == 0) for pattern in patterns])


if __name__ == "__main__":
    serve(encode=stateful)
