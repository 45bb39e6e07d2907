"""The page of `pipesched serve`: a web application around simulation, search, pictures and exports."""
