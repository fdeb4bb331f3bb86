"""Claims decode, and answers failed whenever it is asked."""

from .talk import say, serve

if __name__ == "__main__":
    serve(lacks="decode:e2m1", unknown=lambda number: say(f"failed {number} message=no%20decode"))
