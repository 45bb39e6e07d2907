"""Subsolvers of the engine, one per file: each a frozen dataclass whose fields are its parameters."""
