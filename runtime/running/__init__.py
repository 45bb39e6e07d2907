"""Parts of running a schedule without PyTorch: the job, its heartbeat, predicted times."""
