"""What `solve` says, and what it is asked for beside the best schedule."""
