"""What is said of plans and of the layers they are made of."""
