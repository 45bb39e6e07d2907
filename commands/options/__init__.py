"""Command-line options shared by several commands, and their interpretation."""
