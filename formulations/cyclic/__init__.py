"""CP-SAT model of one period of a schedule that repeats itself, and exact evaluation of its solutions."""
