"""Views of a problem, an order of passes and a timeline in notebooks."""
