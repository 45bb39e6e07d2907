"""Mixers of hybrid models that a runtime builds: a model with another is refused before its plans are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipesched.errors import BadInput
from pipesched.layers.roles import Role, role_of
from pipesched.layers.training_step import TrainingStep

MAMBA2, GATED_DELTA = "Mamba 2", "gated delta net"


@dataclass(frozen=True)
class MixerLimits:
    """Mixers of hybrid models that a runtime builds, by the names in `TrainingStep.mixer`.

    `instead` are the mixers in place of attention; `alone` the mixers of layers that consist of one part alone, None if
    the runtime builds no such layers. `any_model`: the runtime runs whatever model the job has, which builds all
    mixers. `stated`: its settings name the mixer, which must then be known where names of layers end in -linear.
    """

    instead: tuple[str, ...] = ()
    alone: tuple[str, ...] | None = None
    any_model: bool = False
    stated: bool = False


ANY_MODEL = MixerLimits(any_model=True)
NO_MIXER = MixerLimits()
# Megatron's GPTModel, by --experimental-attention-variant.
GPT_MODEL = MixerLimits((GATED_DELTA,))


def check_built(limits: MixerLimits, step: TrainingStep | None, names: Sequence[str]) -> None:
    """Raise `BadInput` for a hybrid model that a runtime does not build; the message says which layers it builds.

    `names` are those of all layers, `step` is what the section `model` says of them. For a file without that section
    (`step` is None) names that end in -linear are refused if the runtime's settings must name the mixer, and nothing
    else.
    """
    if step is None and limits.stated and any(name.lower().endswith("-linear") for name in names):
        allowed = f"{' or '.join(limits.instead)}, from the section model"
        raise BadInput(f"found layers with a mixer of no known kind; allowed: {allowed}")
    if step is None or limits.any_model:
        return
    found = _unbuilt_parts(limits, step, names) if step.single_parts else _unbuilt_mixer(limits, step)
    if found is not None:
        raise BadInput(f"found {found}")


def _unbuilt_mixer(limits: MixerLimits, step: TrainingStep) -> str | None:
    if step.with_attention:
        return f"layers with attention and {step.mixer} side by side; allowed: layers with one of them"
    if step.mixer is None or step.mixer in limits.instead:
        return None
    built = f"{' or '.join(limits.instead)} in attention's place" if limits.instead else "layers with attention"
    return f"layers with {step.mixer}; allowed: {built}"


def _unbuilt_parts(limits: MixerLimits, step: TrainingStep, names: Sequence[str]) -> str | None:
    if limits.alone is None:
        mixer = f" ({step.mixer})" if step.mixer else ""
        return f"layers of one part alone{mixer}, by model.pattern; allowed: transformer layers"
    if all(name.startswith("moe") for name in names if role_of(name) is Role.TRANSFORMER):
        # Their names are those of whole layers.
        return "a pattern of experts alone; allowed: with attention or a mixer"
    if step.mixer is None or step.mixer in limits.alone:
        return None
    return f"layers of {step.mixer} alone; allowed: {' or '.join(limits.alone)}"


def model_note(limits: MixerLimits, step: TrainingStep | None) -> str | None:
    """Return a clause, with no full stop, on a hybrid model that the job must have; None for other models and runtimes.

    `step` is None, and so is the result, if the file lists layers.
    """
    if step is None or not limits.any_model or not (step.mixer or step.single_parts):
        return None
    layers = f"layers with {step.mixer}" if step.mixer else "layers of one part alone"
    return f"the model is the job's own: it must have {layers}"
