"""Bound over the modes of backwards and forwards: how often each mode is used, and the least that it takes."""
