"""The parts of the bound over the modes of backwards: how often each is run, and what it takes at least."""
