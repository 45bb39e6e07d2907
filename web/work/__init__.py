"""What runs in a process of its own for the page, so that it can be ended at any time."""
