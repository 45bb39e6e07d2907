"""Pictures of a timeline: each plot is one file that draws on the Axes it gets."""
