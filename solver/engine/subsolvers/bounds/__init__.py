"""Subsolvers that search lower bounds, each with an iterator of certificates in `solver/diagram/`."""
