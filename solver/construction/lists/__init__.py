"""The list scheduler: one run over arrays, compiled, or interpreted if it is not compiled yet."""
