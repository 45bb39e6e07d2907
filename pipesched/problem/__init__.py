"""The problem to solve: passes, placement, costs, memory, objective, and the precedences between passes."""
