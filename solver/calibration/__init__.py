"""Rates of a device fitted to measured training steps: `rates_fit.py`, from observations and their predictions."""
