"""Model configurations of other programs, read as the section `model` of a plan file."""
