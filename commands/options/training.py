"""Options shared by `new --from` and `layouts`: the training settings of a configuration's model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from commands.options.values import share, whole, wholes
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_file import find_device, with_rates
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.layers.derived.precision import PRECISIONS

OPTIONS = (
    "microbatches", "hardware", "sequence", "microbatch_size", "mfu", "node", "rate", "dtype", "training", "vocabulary",
)  # fmt: skip


def add_training(group: ArgumentParser | _ArgumentGroup, microbatches: str, several: bool = False) -> None:
    """Add the options for training and device; those that are not given are None.

    They are micro-batches and their size, hardware, node, rates and `--mfu`, sequence, vocabulary, `--dtype` and
    further fields of `training`. `microbatches` is the help text that says what they count; with `several`,
    `--microbatch-size` is a list of sizes.
    """
    group.add_argument("--microbatches", type=whole(1, 10**7), metavar="M", help=microbatches)
    group.add_argument(
        "--hardware",
        metavar="NAME|FILE",
        help=f"required: one of {', '.join(DEVICES)}, or a hardware file (docs/layers.md)",
    )
    group.add_argument(
        "--sequence", type=whole(1, 10**7), metavar="TOKENS", help="tokens of a sequence (default: CONFIG's)"
    )
    size = "sequences of a micro-batch (default: 1)"
    if several:
        size = "sequences of a micro-batch; with --batch several to choose from, such as 1,2,4 (default: 1,2,4)"
    read = wholes(1, 10**7) if several else whole(1, 10**7)
    group.add_argument("--microbatch-size", type=read, metavar="N", help=size)
    group.add_argument(
        "--mfu", type=share, metavar="SHARE", help="share of the peak that passes reach (default: the device's)"
    )
    group.add_argument("--node", type=whole(1, 10**5), metavar="N", help="devices of a node (default: the device's)")
    group.add_argument(
        "--rate", action="append", metavar="KEY=NUMBER",
        help="a number of a hardware file, or of a plan file's hardware, instead of the device's, such as "
        "tensor_share=0.5, dispatch=expert or data_bandwidth={1: 436, 4: 160} by nodes; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--vocabulary",
        type=whole(1, 10**8),
        metavar="N",
        help="tokens, of Megatron's arguments that name no vocab_size",
    )
    group.add_argument("--dtype", choices=[*PRECISIONS], help="precision of products (default: bf16)")
    group.add_argument(
        "--training", action="append", metavar="KEY=VALUE",
        help="a key of the plan file's section model, such as gradient_bytes=2 or sharding=parameters; may be repeated",
    )  # fmt: skip


def add_sizes(group: ArgumentParser | _ArgumentGroup, names: tuple[str, ...], default: str) -> None:
    """Add an option for each named size of parallelism: a whole number of at least 1, or None if it is not given.

    `default` is the text that the help gives as the default.
    """
    for name in names:
        what = f"{name} parallel size (default: {default})"
        group.add_argument(f"--{name}", type=whole(1, 10**7), metavar="N", help=what)


def wanted_of(args: Namespace, devices: int, sizes: Mapping[str, int | None] | None) -> Wanted:
    """Return the training settings that the options describe; required options must be present.

    `devices` and `sizes` (of parallelism, by name) are put into the settings as they are. `BadInput` for an unknown
    device, a wrong rate, or a text that is no `KEY=VALUE`.
    """
    name, device = find_device(args.hardware)
    rates = _pairs("--rate", args.rate) | ({} if args.node is None else {"node": args.node})
    training = ({} if args.dtype is None else {"dtype": args.dtype}) | _pairs("--training", args.training)
    rated = with_rates(device, rates)
    return Wanted(
        devices, args.microbatches, name, rated.device, args.sequence, args.microbatch_size, sizes,
        None if args.mfu is None else Fraction(args.mfu), training, rated.of_plans,
    )  # fmt: skip


def _pairs(option: str, given: list[str] | None) -> dict[str, Any]:
    """Return the values of a repeated option's `KEY=VALUE` texts, `given`, by key, as YAML reads them.

    Of a repeated key the last counts. Empty if not given. `BadInput` for any other text.
    """
    wrong = [one for one in given or () if not one.partition("=")[0] or "=" not in one]
    if wrong:
        raise BadInput(*(f"{option}: found {one!r}; allowed: KEY=VALUE" for one in wrong))
    return {key: read_yaml(value, option) for key, _, value in (one.partition("=") for one in given or ())}


def missing(args: Namespace, *names: str) -> list[str]:
    """Return those of `names`, in their order, that the user gave no option for, as they are typed (`--gpus`)."""
    return [f"--{name}" for name in names if getattr(args, name) is None]
