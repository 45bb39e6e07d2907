"""Mutants of a file: how they are made, which tests must notice them, and which change nothing."""
