"""The parts of a schedule file: what it says of tasks, and how its orders and starts are read."""
