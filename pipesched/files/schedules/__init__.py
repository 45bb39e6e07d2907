"""Parts of reading and writing schedule files: names of tasks, orders and starts."""
