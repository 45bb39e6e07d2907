"""Sizes of the program of ranks with sharded stages, for it and for the test that starts it."""

from __future__ import annotations

STAGES, MICROBATCHES, BATCH, WIDTH = 4, 4, 8, 8
WORLD, PIPELINE, REPLICAS = 4, 2, 2
