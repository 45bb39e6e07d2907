"""Reports on plans, and on the layers that they are made of."""
