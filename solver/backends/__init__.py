"""CP-SAT backend: solving and interrupting models, and callbacks."""
