"""The decision diagram of the first stages: how a chain's forwards and backwards pass each other with little memory."""
