"""The tasks of a pipeline iteration, what each waits for, and the memory that passes take."""
