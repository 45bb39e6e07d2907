"""Results of searches as commands, plots and stores read them: solutions, plans, certificates and evidence."""
