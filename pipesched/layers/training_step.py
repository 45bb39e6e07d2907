"""The step of training around a pipeline: devices that share a stage, and the work after the last backward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from pipesched.layers.derived.shape import Parallel


@dataclass(frozen=True)
class TrainingStep:
    """Of a plan whose layers were derived from a model's shape.

    A micro-batch is `microbatch_size` sequences of `sequence` tokens, on each of the data parallel replicas. By name of
    a layer, once a step, in the file's unit: `reduction` is the time in which a device reduces its gradients and
    gathers its weights, as far as no pass hides it, `optimizer` that of the optimizer's step; both are empty where the
    file says nothing of them. `operations`: floating-point operations of a micro-batch in the whole model, forward and
    backward, with nothing computed twice. `experts` of a layer: 0 for none. `longest`: tokens of the longest sequence
    that the model's own configuration allows; None where nothing is said. `latent_attention`: its layers have multi-
    head latent attention. `device` is the name of the hardware, where the file has one, `assumed` are its numbers by
    their keys in the file.
    """

    sequence: int
    microbatch_size: int
    parallel: Parallel
    reduction: Mapping[str, Fraction]
    operations: Fraction
    experts: int = 0
    longest: int | None = None
    latent_attention: bool = False
    optimizer: Mapping[str, Fraction] = field(default_factory=dict)
    device: str | None = None
    assumed: Mapping[str, float | str] = field(default_factory=dict)

    def tokens(self, microbatches: int) -> int:
        """Of one step, with so many micro-batches on each replica."""
        return self.sequences(microbatches) * self.sequence

    def sequences(self, microbatches: int) -> int:
        """The global batch."""
        return microbatches * self.microbatch_size * self.parallel.data
