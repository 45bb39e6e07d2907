"""Construction of a problem's task network from its stages and other features."""
