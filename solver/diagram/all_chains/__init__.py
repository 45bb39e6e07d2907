"""Bound by crossings of all chains on some devices, with the memory and the blocks that they share there."""
