"""The engine of one solve: parts that share the time around the incumbent and the lower bound."""
