"""Searches for plans: over placements, over the partitions of one placement, and over orders of passes."""
