"""Claims encode, decode and e2m1, and does not decode it: allowed, and said case by case."""

from .talk import serve

if __name__ == "__main__":
    serve(lacks="decode:e2m1")
