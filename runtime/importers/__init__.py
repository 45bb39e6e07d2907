"""Importers: schedules of other programs read back, one format a file."""
