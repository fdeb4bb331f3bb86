"""Ties away from zero, always."""

from .talk import encode, serve

if __name__ == "__main__":
    serve(encode=lambda patterns: encode([pattern + (pattern & 0xFFFFF == 0) for pattern in patterns]))
