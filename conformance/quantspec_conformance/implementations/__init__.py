"""Implementations under test: the law itself, Python classes, OpenCL devices, other processes, folders of files."""
