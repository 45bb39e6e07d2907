"""What `check` says of schedules, plans and sweeps."""
