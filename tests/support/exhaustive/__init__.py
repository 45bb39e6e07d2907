"""The optimum of tiny problems whose passes are a task each, by a compiled search over the orders of all devices."""
