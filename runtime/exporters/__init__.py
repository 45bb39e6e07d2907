"""Exporters: schedules as files for the programs that run or show them, one format a file."""
