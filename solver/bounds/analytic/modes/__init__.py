"""Lower bounds by how often a device uses each mode: passes alone or in blocks, backwards full or split."""
