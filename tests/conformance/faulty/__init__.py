"""Faulty adapters: each speaks the protocol until it does one thing wrong. Standard library only, run as scripts."""
