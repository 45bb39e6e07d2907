"""Local search: simulated annealing over orders and modes."""
