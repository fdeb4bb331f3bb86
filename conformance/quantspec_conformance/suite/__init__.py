"""The suite: cases with permanent ids, as files that any language reads, and the one generator that writes them."""
