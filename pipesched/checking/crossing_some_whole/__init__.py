"""The check of crossings of steps where the weight passes of some devices are whole in front of the first steps."""
