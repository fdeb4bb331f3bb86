"""Answers requests that cannot be read."""

from .talk import say, serve

if __name__ == "__main__":
    serve(unread=lambda number: say(f"ok {number}"))
