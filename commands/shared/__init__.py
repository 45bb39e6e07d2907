"""Parts shared by commands: files, tables, the terminal, and how a command ends.

- `catalogue.py` is the registry of commands and has the exit codes, `parser.py` the command line.
- `output.py` says what goes to which stream; `file_arguments.py` reads files, `termination.py` has signals.
"""
