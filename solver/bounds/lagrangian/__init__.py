"""The Lagrangian lower bound: multipliers of one device's time and memory, and their subproblem."""
