"""Decision variables: operations with start and end, order literals."""
