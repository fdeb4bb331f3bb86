"""Nothing is wrong with this one."""

from .talk import serve

if __name__ == "__main__":
    serve()
