"""Parts of running a schedule that do not need PyTorch: the job, its heartbeat, predicted times."""
