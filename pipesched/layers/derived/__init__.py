"""Layers derived from a transformer's shape and the hardware, by formulas for parameters, operations and memory."""
