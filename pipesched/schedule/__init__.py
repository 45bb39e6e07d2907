"""Schedules (orders), timelines (times) and their metrics."""
