"""The check of crossings of steps with whole weight passes."""
