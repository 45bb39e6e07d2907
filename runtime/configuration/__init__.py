"""Settings that generated modules make in a trainer's configuration, shared by exporters and partition formats."""
