"""The check of crossings of all chains: all orders of the forwards and gradients that share some devices."""
