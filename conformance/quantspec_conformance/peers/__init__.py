"""Other libraries under test: their adapters, environments, results, and what is known of their differences."""
