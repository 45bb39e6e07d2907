"""Models made of layers: what a plan decides how to cut into stages, and the problem that a cut makes."""
