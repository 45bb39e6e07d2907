"""What annealing moves: the passes of a schedule as units of fixed mode, or as operations whose modes are open."""
