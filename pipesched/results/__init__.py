"""Results that commands, plots and stores read: solution, certificate."""
