"""What several commands share: files, tables, the terminal, and how a command ends."""
