"""Tables and texts that the commands print or write."""
