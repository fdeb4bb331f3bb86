"""A banner on stdout before the first answer."""

from .talk import say, serve

if __name__ == "__main__":
    serve(before=lambda verb: say("loading kernels ...") if verb == "hello" else None)
