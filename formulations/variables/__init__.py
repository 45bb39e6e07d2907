"""Decision variables of the exact model: operations with start and end, and order literals."""
