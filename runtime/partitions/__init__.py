"""Partitions of a model's layers as settings of training runtimes, written and read, one module for each format."""
