"""HTML pages that need no network: the interactive chart of schedules, and reports."""
