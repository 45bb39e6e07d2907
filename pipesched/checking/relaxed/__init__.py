"""The poorer problems that evidence speaks of, each rewrite once more in the check's own words."""
