"""Says nothing to what it does not know."""

from .talk import nothing, serve

if __name__ == "__main__":
    serve(unknown=nothing)
