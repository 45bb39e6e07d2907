"""Reports on plans and on the layers they are made of."""
