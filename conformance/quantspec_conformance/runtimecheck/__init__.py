"""`quantspec devices --check`: the suite on every runtime and every hostile build, and the kernels through other compilers."""
