"""Features of problem files, one module each: keys, checks, conversion into a `Problem`, and what it excludes."""
