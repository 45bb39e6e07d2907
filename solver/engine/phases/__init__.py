"""The phases of the engine, one a file: each a frozen dataclass whose fields are its shares of time and its limits."""
