"""The engine of one solve: subsolvers that share the time around the incumbent and the lower bound."""
