"""Construction heuristics and analytic bounds, which run in order before the subsolvers share the time."""
