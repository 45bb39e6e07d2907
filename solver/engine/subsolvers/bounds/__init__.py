"""Subsolvers that search lower bounds, one per file, each with an iterator of certificates in `solver/diagram/`."""
