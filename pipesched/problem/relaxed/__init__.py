"""Relaxations: simpler problems whose lower bounds are also lower bounds of the problem."""
