"""A line of timing on stdout after each operation."""

from .talk import say, serve

if __name__ == "__main__":
    serve(after=lambda verb: say("took 0.1 ms") if verb == "run" else None)
