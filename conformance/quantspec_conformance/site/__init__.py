"""The site: pages generated from the tables, the rules and the reference."""
