"""Features of problems besides stages: modules, arcs between chains, shared resources, modes of saving memory."""
