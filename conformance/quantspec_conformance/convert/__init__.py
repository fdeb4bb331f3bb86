"""Convert: the packed bytes of one tensor from one stack's container to another's, exactly, and checked by going back."""
