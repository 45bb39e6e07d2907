"""Partitions of one placement: the bound over all of them, cheap and balanced ones, and what fits in memory."""
