"""Adapters that misbehave, each in one way; what `adapter check` must find. Run with `python -m`."""
