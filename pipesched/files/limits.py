"""Largest accepted numbers, problem, model and file sizes; anything larger is refused as a mistake."""

LARGEST = 10**12  # exact arithmetic on more would be a very long wait
MOST_LAYERS = 10_000  # far more than any model has

# Stages times micro-batches, far above any pipeline: a schedule of so many takes a gigabyte, and seconds to judge.
MOST_CELLS = 500_000

# Tasks of one iteration: a schedule of so many takes some gigabytes to time and judge.
MOST_TASKS = 2_000_000

# Of the text of a file, decompressed: more than the schedule file of the largest problem there may be.
MOST_BYTES = 256 * 2**20
