"""Construction heuristics, which run in order before the subsolvers share the time."""
