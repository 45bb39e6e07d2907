"""The web application of `pipesched serve`: a page for simulation, search, pictures and exports."""
