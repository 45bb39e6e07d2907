"""The subsolvers of the engine, one a file: each a frozen dataclass whose fields are its settings."""
