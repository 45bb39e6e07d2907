"""From measured passes to a problem file."""
