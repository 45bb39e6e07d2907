"""Bound by crossings where passes overlap: all orders of a chain's steps on some devices, and all blocks of two."""
