"""The check of crossings with blocks: all orders of a chain's forwards and gradients, and all blocks of two of them."""
