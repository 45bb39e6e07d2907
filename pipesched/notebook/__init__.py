"""What notebooks show of a problem, an order of passes and a timeline."""
