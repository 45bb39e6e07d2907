"""Reports of the command `check` on schedules, plans and sweeps."""
