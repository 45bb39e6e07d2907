"""The command line of pipesched: one module for each command."""
