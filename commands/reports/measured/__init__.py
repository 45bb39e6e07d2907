"""Reports on executed runs, profiles and measured traces."""
