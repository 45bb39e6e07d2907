"""Published measurements of training steps, what the formulas predict of each, and how far that is off."""
