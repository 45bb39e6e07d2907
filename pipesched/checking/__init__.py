"""Checks lower bounds from the evidence in their certificates, without the solver and without its code."""
