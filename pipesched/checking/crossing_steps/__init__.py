"""The check of crossings of steps: all orders of a chain's forwards and gradients on some devices."""
