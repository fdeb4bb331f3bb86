"""What the harness and an implementation say to each other: messages, and the two wires that carry them."""
