"""The search for schedules and plans: lower bounds with certificates, construction heuristics, subsolvers, `solve`."""
