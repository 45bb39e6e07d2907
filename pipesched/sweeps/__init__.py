"""Sweeps: a problem or plan file with fields over lists of values, its cells, what is known of each, their store."""
