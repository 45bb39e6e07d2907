"""The check of lower bounds: their arguments repeated from the evidence in certificates, without any code of the
solver."""
