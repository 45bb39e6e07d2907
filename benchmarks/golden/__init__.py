"""Values, certificates and messages of all examples and of drawn pairs of features, stored, and compared."""
