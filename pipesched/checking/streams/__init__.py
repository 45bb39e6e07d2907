"""Checks of bounds for passes made of tasks on several streams."""
