"""Values of keys: their types, error messages and JSON Schema."""
