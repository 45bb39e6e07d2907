"""Joint search over partition and order by simulated annealing; every proposal is simulated."""
