"""Bound by crossings of steps with whole weight passes: none is interrupted, and no two labels are merged."""
