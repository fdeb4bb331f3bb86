"""Leaves when it hears something that it does not know."""

import sys

from .talk import serve

if __name__ == "__main__":
    serve(unknown=lambda line: sys.exit(f"unknown message {line}"))
