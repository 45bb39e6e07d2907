"""Models made of layers, plan problems that ask how to cut them into stages, and the problem that a partition makes."""
