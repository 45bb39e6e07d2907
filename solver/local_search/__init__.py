"""Local search: simulated annealing over orders, large-neighbourhood search windows."""
