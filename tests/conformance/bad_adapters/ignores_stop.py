"""Goes on after stop, and at the end of input."""

import time

from .talk import serve

if __name__ == "__main__":
    serve(stop=lambda: time.sleep(60))
