"""Calls what it does not know a failure."""

from .talk import say, serve

if __name__ == "__main__":
    serve(unknown=lambda line: say(f"failed {line} message=KeyError"))
