"""Schedules (order), timelines (times) and their metrics."""
