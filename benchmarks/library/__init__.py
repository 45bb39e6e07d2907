"""The library of published instances: read, verified, solved, and the page about it."""
