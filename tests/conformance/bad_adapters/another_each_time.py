"""The identity holds the process id."""

import os

from .talk import IDENTITY, serve

if __name__ == "__main__":
    serve(identity=f"{IDENTITY} build=pid-{os.getpid()}")
