"""The parts of a problem file: its keys, their checks, and their way into and out of a `Problem`."""
