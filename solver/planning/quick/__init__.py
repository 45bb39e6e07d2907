"""Plans found without a search: a runtime's own orders on cuts made at once, timed exactly without a timeline."""
