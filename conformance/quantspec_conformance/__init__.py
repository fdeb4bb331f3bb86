"""quantspec_conformance: the harness that runs implementations against the reference, bit for bit; command `quantspec`."""
