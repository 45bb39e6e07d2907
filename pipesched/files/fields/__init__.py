"""Values of keys in files: their types, error messages and JSON Schema."""
