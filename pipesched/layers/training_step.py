"""The training step around a pipeline: devices that share a stage, and the work after the last backward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from pipesched.layers.derived.shape import Parallel


@dataclass(frozen=True)
class TrainingStep:
    """The training step of a plan whose layers were derived from a model's shape.

    A micro-batch is `microbatch_size` sequences of `sequence` tokens, on each data parallel replica. `reduction` and
    `optimizer` are times once a step of one layer, by its name, in the file's unit: the reduction of gradients and
    gathering of weights that no pass hides, and the optimizer step; layers without such a time are missing.
    `operations` are the floating-point operations of a micro-batch in the whole model, forward and backward, without
    recomputation. `experts` is the number of experts of a layer, 0 for none; `longest` the tokens of the longest
    sequence that the model's configuration allows, None if unknown; `latent_attention` is True for multi-head latent
    attention; `mixer` is the name of what mixes tokens in a hybrid model (None: another model), `with_attention` if its
    layers have attention, too; `single_parts`: each layer is a mixer, attention, a block or experts alone. `device` is
    the name of the hardware, None if the file gives none, and `assumed` its numbers by key.
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
    mixer: str | None = None
    with_attention: bool = False
    single_parts: bool = False

    def tokens(self, microbatches: int) -> int:
        """Return the tokens of one step with `microbatches` on each replica."""
        return self.sequences(microbatches) * self.sequence

    def sequences(self, microbatches: int) -> int:
        """Return the global batch size in sequences, with `microbatches` on each replica."""
        return microbatches * self.microbatch_size * self.parallel.data
