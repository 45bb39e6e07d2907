"""Other programs and models that the engine is compared with."""
