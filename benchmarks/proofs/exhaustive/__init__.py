"""The exact optimum of tiny problems: a search over the orders of all devices together."""
