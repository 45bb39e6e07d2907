"""Problem and schedule files: schema, checks, exact numbers, reading and writing."""
