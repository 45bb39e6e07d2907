"""What is said of runs, profiles and measured traces."""
