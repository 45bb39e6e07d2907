"""Optima of tiny problems by a model of their own, made from the file's document alone.

It knows no reader, network, simulator or formulation of pipesched's: what it says of a problem is what the pages of the
documentation say, written once more.
"""
