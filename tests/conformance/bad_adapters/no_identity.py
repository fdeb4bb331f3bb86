"""Answers hello with a word."""

from .talk import serve

if __name__ == "__main__":
    serve(identity="ready")
