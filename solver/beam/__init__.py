"""Beam search over the forwards and gradients of all chains, and their overlapped blocks."""
