"""Modules for the parts of a problem file: its keys, their checks, and their conversion to and from a `Problem`."""
