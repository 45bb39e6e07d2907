"""Bound by crossings where a device has several stages: all orders of the steps of a chain on some devices."""
