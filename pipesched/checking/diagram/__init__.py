"""The check of relaxed decision diagrams: one replay of any relaxation that the evidence names."""
