"""Sweeps: many problems (cells) solved in parallel, each with the known results of its neighbours in memory."""
