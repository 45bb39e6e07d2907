"""Measured traces of executed schedules: reading, calibration of costs, comparison with the prediction."""
