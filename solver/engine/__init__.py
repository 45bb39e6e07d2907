"""The engine of one solve: subsolvers that share the time limit, one incumbent and one lower bound."""
