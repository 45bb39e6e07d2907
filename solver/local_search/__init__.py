"""Local search: simulated annealing over the orders and modes of passes."""
