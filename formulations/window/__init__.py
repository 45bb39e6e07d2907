"""Large-neighbourhood search windows: CP-SAT reorders one part of a schedule while the others keep their order."""
