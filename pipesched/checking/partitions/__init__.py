"""The check of a bound over all partitions of a placement."""
