"""The problems that the benchmarks measure, and the aims set for them."""
