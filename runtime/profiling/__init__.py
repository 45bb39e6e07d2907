"""Problem and plan files from measured passes."""
