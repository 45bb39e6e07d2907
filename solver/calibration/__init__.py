"""Rates of a device fitted to measured training steps."""
