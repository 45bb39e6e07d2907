"""Partitions of the layers for one placement: lower bounds over all of them, balanced ones, and memory fit."""
