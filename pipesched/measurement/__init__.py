"""Measured traces of a run: reading, calibration of costs, comparison with the prediction."""
