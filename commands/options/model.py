"""Options shared by `run` and `profile` that choose the model to execute: the user's own, or a small GPT."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup

# Each size of the small GPT, and what it is without the option: the defaults of `gpt` in runtime/pytorch/models.py,
# which is not imported for --help, since torch takes seconds to load.
SIZES = {
    "layers": "blocks of the small GPT (default: one a stage)",
    "hidden": "its width (default: 64)",
    "heads": "its attention heads (default: 4)",
    "sequence": "tokens in a sequence (default: 32)",
    "vocabulary": "different tokens (default: 128)",
    "microbatch_size": "sequences in a micro-batch (default: 2)",
}


def add_model(parser: ArgumentParser) -> _ArgumentGroup:
    """Add `--model`, the user's own, and an option for each size of the small GPT; return their group."""
    model = parser.add_argument_group("model (default: a small GPT)")
    model.add_argument("--model", metavar="PACKAGE.MODULE:FUNCTION", help="your own stages: a function of `stages`")
    for size, what in SIZES.items():
        model.add_argument(f"--{size.replace('_', '-')}", type=int, metavar="N", help=what)
    return model


def sizes_of(args: Namespace) -> dict[str, int]:
    """Return the sizes of the small GPT that the user gave, by their keys in `SIZES`; those not given are absent."""
    return {size: getattr(args, size) for size in SIZES if getattr(args, size) is not None}
