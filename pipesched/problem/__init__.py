"""The problem: passes, placement, costs, memory, and what must precede what."""
