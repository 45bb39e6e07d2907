"""Exchange of schedules with other programs, in both directions, and their execution with PyTorch and Megatron-Core."""
