"""Sweeps: cells solved in parallel, each with known results of its neighbours."""
