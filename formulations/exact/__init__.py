"""The exact model of a whole iteration for CP-SAT, and its objectives."""
