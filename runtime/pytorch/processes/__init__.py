"""One process for each device: launched, fed with jobs, and what all of them report put together."""
