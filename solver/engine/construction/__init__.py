"""First schedules and bounds: what runs before parts share the time, in its order."""
