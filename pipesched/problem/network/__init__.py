"""The task network of a pipeline iteration: tasks, precedences, and the memory that passes take."""
