"""Lower bounds, one argument a file; each is a claim about the user's numbers, tested against brute force."""
