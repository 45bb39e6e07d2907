"""Reading and writing of the parts of schedule files: names of tasks, orders, waits and starts."""
