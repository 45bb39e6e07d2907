"""Partitions of a model's layers as settings of training runtimes, and settings read back, one format a file."""
