"""Relaxations of a problem: poorer problems whose lower bounds are lower bounds of the problem."""
