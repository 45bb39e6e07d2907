"""Views of problems, orders of passes and timelines in notebooks."""
