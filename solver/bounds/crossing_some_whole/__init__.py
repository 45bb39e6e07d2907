"""Bound by crossings of steps where the weight passes of some devices are whole in the first rounds."""
