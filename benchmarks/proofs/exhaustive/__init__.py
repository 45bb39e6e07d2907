"""The exact optimum of tiny problems: the orders of each device, then their best combination."""
