"""The check of crossings of steps of more stages: what remains of some stages says which orders need not be tried."""
