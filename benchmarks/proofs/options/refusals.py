"""Refusals that are expected: which options a file with which features may be refused with, and in which words.

Any other line with which a command refuses a file that its reader takes is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_PARAMETERS = frozenset(("reduce", "step", "gather", "norm", "buckets", "each micro-batch", "overlap next"))
_SAVING = frozenset(("offload", "recompute", "decide", "host memory", "shared copies"))
_SEVERAL = _PARAMETERS | _SAVING | {"tasks", "lookups", "layers", "sending stream", "both devices", "keep"}
_CHAINS = frozenset(("chains", "pipelines", "bidirectional", "lost worker", "slow worker"))
_MODULES = frozenset(("encoder", "replicated", "shared embedding", "shared head", "frozen module", "serves"))
_ANY = frozenset[str]()


class Refusal(NamedTuple):
    """A refusal of an option: `text` is found in its line, and the file has one of `features`, if there are any.

    With `absent` the file has none of these.
    """

    text: str
    features: frozenset[str] = _ANY
    absent: frozenset[str] = _ANY

    def expected(self, features: frozenset[str], line: str) -> bool:
        """Return True if this is the refusal in `line` of a file with these features."""
        meant = not self.features or self.features & features
        return bool(meant and not self.absent & features and re.search(self.text, line))


_DOES_NOT_APPLY = Refusal(r"^pipesched: \S+ does not apply to problem: needs \S+.*; those that do: ")
_LEFT_OUT = r"^pipesched: --for \S+: found .+; allowed: "
# Where no cell is a valid problem, the first mistake of a cell.
_NO_CELL = (
    r"^pipesched: \S+: (devices|chunks|placement|times|transfer|memory|partition|objective)\b.*: found .+; allowed: "
)
REFUSALS: Mapping[str, tuple[Refusal, ...]] = {
    "solve --objective": (
        Refusal("objective: found iteration without parameters; allowed: ", absent=_PARAMETERS),
        Refusal(r"objective: found \w+ with parameters; allowed: iteration$", _PARAMETERS),
        Refusal(r"objective: found free_memory without memory\.capacity; allowed: with it$"),
        Refusal(
            r"objective: found (period|span) with .+; allowed: (makespan|span|period| or )+$",
            _CHAINS
            | _MODULES
            | {"offload", "recompute", "unequal", "pieces", "lookups", "until the end", "both devices", "frozen"},
        ),
    ),
    "solve --start": (_DOES_NOT_APPLY,),
    "solve --for": (
        Refusal(r"^pipesched: \S+: in a placement of \d+ chains .+ can express it$", _CHAINS),
        Refusal(r"^pipesched: \S+: modules feed the trunk, .+ can express it$", _MODULES),
        Refusal(
            r"^pipesched: \S+: found .+ on the devices, and .+ can express it$",
            frozenset(("own placement", "frozen module", "encoder", "replicated")),
        ),
        Refusal(r"^pipesched: \S+: the micro-batches are unequal, .+ can express it$", frozenset(("unequal",))),
        Refusal(r"^pipesched: \S+: stages are frozen, .+ can express it$", frozenset(("frozen", "frozen module"))),
        Refusal(_LEFT_OUT + "passes that are single tasks$", _SEVERAL | _MODULES | {"pieces"}),
    ),
    "solve --from-state": (
        Refusal("found then in the problem; allowed with a state: problems without it$", frozenset(("free memory",))),
        Refusal("found overlapped blocks in the problem; allowed with a state: ", frozenset(("blocks",))),
        Refusal("found microbatch_scale in the problem; allowed with a state: ", frozenset(("unequal",))),
        Refusal(r"found transfers? .*both.* in the problem; allowed with a state: ", frozenset(("both devices",))),
        Refusal("found the objective period in the problem; allowed with a state: ", frozenset(("period",))),
    ),
    "sweep": (Refusal(_NO_CELL),),
    "sweep PLAN": (Refusal(_NO_CELL),),
    "compare PLAN": (
        Refusal(
            r"objective: found \w+; published schedules of a plan file are for makespan or span$",
            frozenset(("period", "free memory")),
        ),
    ),
    "plan --for": (
        Refusal(
            r"^pipesched: --for \S+: found placement .+, \d+ pieces of equal .+; allowed: ", frozenset(("pieces",))
        ),
        Refusal(r"^pipesched: --for \S+: found an encoder; allowed: a model without", frozenset(("encoder",))),
        Refusal(
            r"^pipesched: --for \S+: found placement .+, \d+ chunks; allowed: ",
            frozenset(("interleaved", "wave", "bidirectional", "several placements")),
        ),
        Refusal(_LEFT_OUT + "makespan or span, since it runs its own orders$", frozenset(("period", "free memory"))),
        Refusal(_LEFT_OUT + "passes that are single tasks$", _SEVERAL),
        Refusal(
            r"^pipesched: --for (vllm|sglang): found a backward of layer .+; allowed: backward 0, or frozen: true$"
        ),
    ),
    "plan --partition": (
        Refusal(r"^pipesched: --partition: (vllm|sglang): found \d+ entries; allowed: \d+, one per device$"),
        Refusal(
            r"^pipesched: --partition: found no layer of the file on stage \d+; allowed: at least one on each stage$",
            absent=frozenset(("empty stages",)),
        ),
        Refusal(
            r"^pipesched: --partition: stage \d+ begins with .+, which shares a stage with the layer before it$",
            frozenset(("with previous",)),
        ),
    ),
}


def refuse_unexpected(option: str, features: tuple[str, ...], line: str) -> None:
    """AssertionError for a refusal that is not expected of an option on a file with these features."""
    known = REFUSALS.get(option, ())
    assert any(one.expected(frozenset(features), line) for one in known), f"refused: {line}"
