"""Modules that read the parts of a plan file: its keys, their checks, and its layers."""
