"""Whether a tiny problem has a schedule below a value: a search over the orders of all devices together."""
