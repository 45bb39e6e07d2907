"""Large-neighbourhood search windows: part of a schedule ordered anew by CP-SAT while the rest keeps its order."""
