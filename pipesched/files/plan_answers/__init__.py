"""Plans that were found, as files: the problem, the plan, and what the bound over all plans rests on."""
