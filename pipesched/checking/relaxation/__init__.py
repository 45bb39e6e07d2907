"""The check of bounds by the linear relaxation: rows in words of their own, and what their multipliers add up to."""
