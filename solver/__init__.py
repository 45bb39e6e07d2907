"""The search: lower bounds with certificates, hints, and the solve that puts them together."""
