"""Schedules and plans for a runtime: searched among those it can express, and written in its terms."""
