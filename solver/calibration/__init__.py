"""Rates of a device fitted to measured steps of training."""
