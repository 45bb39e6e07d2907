"""Layers derived from a transformer's shape and the hardware: parameters, operations, memory and transfers by formula."""
