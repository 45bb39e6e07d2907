"""Writes schedules out for the programs that run or show them."""
