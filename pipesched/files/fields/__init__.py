"""What one key of a file may hold: its type, its error message and its JSON Schema."""
