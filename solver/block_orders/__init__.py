"""Schedules with overlapped blocks: beam search over the forwards and gradients of all chains."""
