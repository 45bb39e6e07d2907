"""How large a number, a problem and a model in a file may be; what is larger is taken for a typing error."""

LARGEST = 10**12  # exact arithmetic on more would be a very long wait
MOST_LAYERS = 10_000  # far more than any model has

# Stages times micro-batches, far above any pipeline: a schedule of so many takes a gigabyte, and seconds to judge.
MOST_CELLS = 500_000
