"""Parts of a problem other than stages: modules, arcs between chains, shared resources, modes of saving memory."""
