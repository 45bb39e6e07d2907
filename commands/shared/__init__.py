"""Parts shared by commands: files, tables, the terminal, and how a command ends."""
