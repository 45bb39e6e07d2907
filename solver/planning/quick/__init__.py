"""Plans without a search: 1F1B orders on cuts made directly, timed exactly without a timeline."""
