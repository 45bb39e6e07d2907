"""Importers of other programs' schedules, one module for each format."""
