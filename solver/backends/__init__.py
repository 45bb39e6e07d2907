"""CP-SAT and background workers: how a model is solved, stopped and listened to."""
