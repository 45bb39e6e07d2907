"""Settings for hybrid models of Megatron-LM: `--hybrid-layer-pattern`, a letter for each layer, `|` between stages.

Such a model takes no layout (megatron/core/models/hybrid/hybrid_layer_allocation.py; validate_args of
megatron/training/arguments.py refuses both together). A model is hybrid if the name of one of its layers in the plan
file is one that only hybrid models have. Attention layers with a window have the same letter as those without. The
settings --window-size and --window-attn-skip-freq say which layers have a window, by the number of the layer
(`is_layer_window_attention` of megatron/core/transformer/utils.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.errors import BadInput
from pipesched.layers.roles import Role, role_of
from runtime.partitions.list_texts import between_embedding_and_head
from runtime.partitions.plan_limits import MtpPlace
from runtime.partitions.staged_model import StageCounts, StagedModel

_LETTERS = {"mamba": "M", "gdn": "G", "attention": "*", "mla": "+", "dsa": "D", "mlp": "-", "moe": "E"}
# Names that only a hybrid model has: a transformer layer has both attention and MLP.
_HYBRID = frozenset(_LETTERS) - {"moe"}


def is_hybrid(names: Sequence[str]) -> bool:
    """Return True if one of the layers, of which `names` are the names, has a name that only hybrid models have.

    These names are mamba and the like, and attention or mlp as its own layer, also with a window.
    """
    return any(_part(name) in _HYBRID for name in names)


def _part(name: str) -> str:
    """Return a layer's name in lower case, without the endings -window and -bf16."""
    return name.lower().removesuffix("-window").removesuffix("-bf16")


def check_hybrid(names: Sequence[str]) -> None:
    """Raise `BadInput` if a hybrid model has layers for which the pattern has no letter.

    Embedding, head and multi-token prediction need none; of other models nothing is refused.
    """
    if not is_hybrid(names):
        return
    for name in dict.fromkeys(names):
        role = role_of(name)
        if role is Role.TRANSFORMER and _part(name) not in _LETTERS:
            raise BadInput(f"found {name} in a hybrid model; allowed: {', '.join(_LETTERS)} between embedding and head")


def mtp_place(names: Sequence[str]) -> MtpPlace:
    """Return the stages that may have multi-token prediction layers; `names` are those of the model's layers.

    For a hybrid model that is the last stage, as its pattern ends with them; for any other all are on one stage.
    """
    return MtpPlace.LAST_STAGE if is_hybrid(names) else MtpPlace.ONE_STAGE


def no_hybrid(why: str, names: Sequence[str]) -> None:
    """Raise `BadInput` for a hybrid model; `why` is the reason."""
    if is_hybrid(names):
        raise BadInput(f"found a hybrid model; allowed: transformer layers ({why})")


def pattern_of(model: StagedModel) -> str:
    """Return the pattern: a letter for each layer, `|` between stages; embedding and head have none.

    After each `/` is a multi-token prediction layer: an attention of the model's kind, and experts if it has some, else
    an MLP. `KeyError` for layers that `check_hybrid` refuses.
    """
    runs = [[run for run in stage.runs if run.role is Role.TRANSFORMER] for stage in model.stages]
    main = "|".join("".join(_LETTERS[_part(run.name)] * run.layers for run in stage) for stage in runs)
    attention = next((one for one in "+D" if one in main), "*")
    return main + f"/{attention}{'E' if 'E' in main else '-'}" * model.mtp


def names_of(model: StagedModel) -> list[str]:
    """Return the names of all runs (consecutive equal layers), stage by stage."""
    return [run.name for stage in model.stages for run in stage.runs]


def is_pattern(text: str) -> bool:
    """Return True if the text has none of the letters t, m and L.

    No pattern has one of these, and every layout that Megatron accepts has an L. Nothing else is checked: the result is
    True for empty text too.
    """
    return not set(text) & set("Ltm")


def read_pattern(text: str, devices: int, layers: int) -> tuple[StageCounts, ...]:
    """Return the layers of each stage of a pattern for so many pipeline `devices`.

    `BadInput` with a line for each rule that it breaks. The model has `layers` transformer layers.
    """
    main, *mtp = text.strip().strip("'\"").split("/")
    segments = main.split("|")
    strange = next((one for one in "".join([*segments, *mtp]) if one not in _LETTERS.values()), None)
    if strange is not None:
        letters = " ".join(_LETTERS.values())
        raise BadInput(f"megatron: found {strange!r} in a pattern; allowed: {letters}, | and /")
    mistakes = []
    if len(segments) % devices:
        mistakes.append(f"megatron: found {len(segments)} segments; allowed: a multiple of the {devices} devices")
    total = sum(map(len, segments))
    if total != layers:
        mistakes.append(f"megatron: found {total} layers in the pattern; allowed: the model's {layers}")
    if mistakes:
        raise BadInput(*mistakes)
    *others, last = between_embedding_and_head(list(map(len, segments)))
    return (*others, last._replace(mtp=len(mtp)))
