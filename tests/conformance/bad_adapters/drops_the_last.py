"""Loses the element of a scalar, and what lies beyond 64 KiB."""

from .talk import encode, serve

if __name__ == "__main__":
    serve(encode=lambda patterns: [*encode(patterns[:16384]), *[0] * max(0, len(patterns) - 16384)])
