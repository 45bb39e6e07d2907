"""Reports on runs, profiles and measured traces."""
