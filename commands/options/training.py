"""What `new --from` and `layouts` share: the options that say how a model of a configuration is trained."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Mapping
from fractions import Fraction

from commands.options.values import share, whole
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.plan_of_config import Wanted

OPTIONS = ("microbatches", "hardware", "sequence", "microbatch_size", "mfu")


def add_training(group: ArgumentParser | _ArgumentGroup, microbatches: str) -> None:
    """The options; `microbatches` says what is counted."""
    group.add_argument("--microbatches", type=whole(1, 10**7), metavar="M", help=microbatches)
    group.add_argument("--hardware", choices=[*DEVICES], metavar="NAME", help=f"one of {', '.join(DEVICES)}")
    group.add_argument(
        "--sequence", type=whole(1, 10**7), metavar="TOKENS", help="tokens of a sequence (default: CONFIG's)"
    )
    group.add_argument(
        "--microbatch-size", type=whole(1, 10**7), metavar="N", help="sequences of a micro-batch (default: 1)"
    )
    group.add_argument("--mfu", type=share, metavar="SHARE", help="share of the peak that passes reach (default: 40%%)")


def add_sizes(group: ArgumentParser | _ArgumentGroup, names: tuple[str, ...], default: str) -> None:
    """Sizes of parallelism, an option each."""
    for name in names:
        what = f"{name} parallel size (default: {default})"
        group.add_argument(f"--{name}", type=whole(1, 10**7), metavar="N", help=what)


def wanted_of(args: Namespace, devices: int, sizes: Mapping[str, int | None] | None) -> Wanted:
    """What the options say, once they are known to be there."""
    return Wanted(
        devices, args.microbatches, args.hardware, DEVICES[args.hardware], args.sequence, args.microbatch_size, sizes,
        None if args.mfu is None else Fraction(args.mfu),
    )  # fmt: skip


def missing(args: Namespace, *names: str) -> list[str]:
    """The options of these names that are not there."""
    return [f"--{name}" for name in names if getattr(args, name) is None]
