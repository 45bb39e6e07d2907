"""Measurements: run a module of this folder, and it prints a table with machine, versions and seeds."""
