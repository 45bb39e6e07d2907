"""Checks of bounds where passes are made of tasks on several streams."""
