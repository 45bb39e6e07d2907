"""The published schedules, one family a file: each turns a problem into the order its paper draws."""
