"""Result files: what a run of the suite found, as JSON lines that can be written while it goes on, read, verified and exported."""
