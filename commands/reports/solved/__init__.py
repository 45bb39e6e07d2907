"""Reports of `solve`, and of the further questions that it answers."""
