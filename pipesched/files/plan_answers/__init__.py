"""Documents of plans that were found: the plan problem, the partition, and the evidence of the bound over all plans."""
