"""The engine of one solve: phases in turn around the incumbent and the lower bound."""
