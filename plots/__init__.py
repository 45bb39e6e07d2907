"""Pictures of a timeline: each plot is one module that draws on given matplotlib axes."""
