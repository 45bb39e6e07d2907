"""Linear models of one device, time-indexed, for Lagrangian multipliers."""
