"""Reports of `solve`, and of its additional questions."""
