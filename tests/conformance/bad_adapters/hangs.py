"""Does not come back from encode."""

import time

from .talk import encode, serve


def endless(patterns: list[int]) -> list[int]:
    """Waits for a device that says nothing."""
    time.sleep(60)
    return encode(patterns)


if __name__ == "__main__":
    serve(encode=endless)
