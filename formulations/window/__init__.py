"""The model of a large-neighbourhood search window: some passes free, the rest in fixed order."""
