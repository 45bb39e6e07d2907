"""Tables, pictures and records of measurements, with machine, versions and seeds."""
