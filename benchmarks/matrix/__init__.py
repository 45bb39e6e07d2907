"""Every feature of problem and plan files as a switch, and all pairs and triples of them through every command."""
