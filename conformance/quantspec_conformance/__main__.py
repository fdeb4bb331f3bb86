"""`python -m quantspec_conformance`."""

from .cli import main

main()
