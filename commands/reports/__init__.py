"""Tables and texts that commands print or write."""
