"""Models of one period of a schedule that repeats itself."""
