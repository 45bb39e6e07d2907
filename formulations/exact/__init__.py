"""The exact model of a whole iteration for CP-SAT, its objectives and linear relaxation."""
