"""Drawings made of characters, for terminals."""
