"""The relaxed problems to which evidence refers; each relaxation is implemented here independently of the solver."""
