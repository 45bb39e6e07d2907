"""Diagrams with whole weight passes: none is interrupted, and no two labels are merged."""
