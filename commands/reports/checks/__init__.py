"""Reports of `check` on schedules, plans and sweeps."""
