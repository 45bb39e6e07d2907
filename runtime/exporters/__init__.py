"""Exporters of schedules to files for the programs that run or show them, one module for each format."""
