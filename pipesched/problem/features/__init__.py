"""What a problem may have beside its stages: modules, arcs between chains, shared resources, ways to save memory."""
