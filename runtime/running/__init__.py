"""What running a schedule takes besides PyTorch: the job, its heartbeat, predicted times."""
