"""Work for the page in a process of its own, so that it can be ended at any time."""
