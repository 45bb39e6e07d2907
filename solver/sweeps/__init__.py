"""Sweeps: cells solved side by side, each with what is known of its neighbours."""
