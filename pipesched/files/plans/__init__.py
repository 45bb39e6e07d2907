"""Parts of reading a plan file: its keys, their checks, and its layers."""
