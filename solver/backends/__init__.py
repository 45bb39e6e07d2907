"""CP-SAT: how a model is solved, stopped and listened to."""
