"""Problem, plan, schedule and peaks files: reading, checks, exact numbers, writing."""
