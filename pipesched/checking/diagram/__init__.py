"""The check of relaxed decision diagrams: a replay of every relaxation that evidence may name."""
