"""What executors of ranks share: the program of a rank, its streams and transfers, and saved tensors that move."""
