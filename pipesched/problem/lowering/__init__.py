"""The task network of a problem, made of its stages and its features."""
