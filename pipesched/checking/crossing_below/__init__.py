"""The check of crossings of steps below a value: only orders that may end before it are tried."""
