"""Processes of a run, one for each device: launched, given jobs, and their reports combined."""
