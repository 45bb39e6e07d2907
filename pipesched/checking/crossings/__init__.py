"""The argument about where the forwards and gradients of a chain pass each other, and its dynamic program."""
