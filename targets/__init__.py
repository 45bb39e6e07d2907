"""Schedules and plans for a runtime: searched for within what it can express, and said in its terms."""
