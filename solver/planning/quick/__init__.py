"""Plans without a search: 1F1B orders of a training framework on cuts made directly, timed exactly without a
timeline.
"""
