"""The command `new`: writes a commented problem file to start from, or a plan file of a model's configuration."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from fractions import Fraction
from math import ceil
from pathlib import Path

from commands.options.training import OPTIONS, add_sizes, add_training, missing, wanted_of
from commands.options.values import whole
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import files_written, next_step, with_program, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import is_device, write_whole
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import SIZES, Wanted, plan_text, sizes_of
from pipesched.files.model_configs.read_config import KINDS, read_config
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem


def summary(plan: PlanProblem, config: ModelConfig, wanted: Wanted) -> list[str]:
    """Return lines on a plan file that is made of a model's configuration.

    They are the first of the plan's assumptions, the configuration's notes, the number of devices, and last the memory
    that the model's state takes on a device on average with the memory there is. If no plan fits, or hardly any, the
    last line says so, and which options help.
    """
    sizes = sizes_of(config, wanted)
    inside = sizes["tensor"] * sizes["context"] * sizes["data"]
    lines = [*plan.assumptions[:1], *config.notes]
    lines.append(f"{wanted.devices} pipeline ranks of {inside} x {wanted.hardware}: {wanted.devices * inside} in all")
    state, capacity = sum(layer.memory for layer in plan.model.sequence), plan.cluster.capacity
    assert capacity is not None
    mean, room = float(state / wanted.devices), float(capacity[0])
    line = f"model state: {mean:.1f} GiB a device on average, of {room:g} GiB"
    # The first rank of 1F1B has as many micro-batches in flight as there are ranks, each of its share of the layers.
    kept = (min((mode.keeps for mode in layer.recompute), default=Fraction(1)) for layer in plan.model.sequence)
    activations = float(sum(layer.activation * share for layer, share in zip(plan.model.sequence, kept, strict=True)))
    if mean <= room < mean + activations:
        line += (
            f"; with all recomputed 1F1B holds {activations:.1f} GiB more on the first rank: hardly any plan fits; "
            "more pipeline ranks, or --tensor, --expert and --data larger"
        )
    if not capacity[0]:
        line += (
            ": a layer takes all memory of a device, or more, while it runs: no plan fits; --microbatch-size smaller, "
            "or --tensor and --context larger"
        )
    elif mean > room:
        least = ceil(state / capacity[0])
        line += f": no plan fits; at least {least} pipeline ranks hold it, or --tensor, --expert and --data larger"
    return [*lines, line]


TEXT = """\
# A small pipeline to start from: replace the numbers by those of your own; `pipesched solve` reads this file.
devices: 4                # pipeline ranks
microbatches: 8           # of one training step
placement: linear         # linear, interleaved, v-shape, wave, bidirectional, or [0, 1, 1, 0]: the device of each stage
time_unit: ms             # a label only
times:                    # one number for every stage, or a list with one per stage
  forward: 10
  backward: [10, 10, 10, 12]  # gradient of the input; the last stage has the loss
  weight: 8               # gradient of the weights; leave it out where your runtime cannot split a backward
  transfer: 0.5           # one activation or gradient from a stage to the next on another device
memory:
  unit: GiB               # a label only
  capacity: 40            # of a device
  static: 24              # taken by weights, gradients, optimizer; leave out where capacity is for activations alone
  activation: 4           # one micro-batch on one stage, from its forward until its weights' gradient
objective: makespan       # or span, or period
"""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: file to write; with `--from` a model configuration, devices, training, sizes; `--json`."""
    parser.add_argument("file", metavar="NAME", nargs="?", help="file to write (default: standard output)")
    parser.add_argument("-o", "--output", metavar="FILE", help="the same as NAME")
    model = parser.add_argument_group("a plan file of a model")
    model.add_argument("--from", dest="source", metavar="CONFIG", help=f"{KINDS}")
    model.add_argument(
        "--devices",
        type=whole(1, 10**7),
        metavar="N",
        help="pipeline ranks, which `layouts` finds for a number of GPUs (default: CONFIG's)",
    )
    add_training(model, "micro-batches of one step, on each data parallel replica")
    add_sizes(model, SIZES, "CONFIG's, or 1")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print the new file, or write it to the path given; `BadInput` if a file is there already.

    A path that ends neither in .yaml nor in .yml gets the ending .yaml, unless a device or pipe is there.
    """
    if args.file is not None and args.output is not None:
        raise BadInput("found NAME and --output; allowed: one of the two")
    text, lines = (with_program(TEXT), []) if args.source is None else _plan(args)
    if args.source is None:
        _refuse_model_options(args)
    name = args.file or args.output
    if name is None:
        print(text, end="") if not args.json else write_json({"text": text})
        return Exit.DONE
    path = Path(name)
    if path.name in ("", ".."):
        raise BadInput(f"{name}: found a folder; allowed: the name of a file to write")
    path = path if path.suffix in (".yaml", ".yml") or is_device(path) else path.with_name(f"{path.name}.yaml")
    if path.exists() and not is_device(path):
        raise BadInput(f"{path}: found one of this name already; allowed: another name, or this one once it is removed")
    write_whole(path, text)
    if args.json:
        write_json({"files": [str(path)]})
    else:
        files_written([path])
        for line in lines:
            print(line)
        if args.source is None:
            next_step(["solve", str(path), "-o", "results"], "writes the best schedule, pictures and a report")
        else:
            next_step(["compare", str(path)], "sets published schedules side by side, each with its own best plan")
    return Exit.DONE


def _refuse_model_options(args: Namespace) -> None:
    given = [key for key in _MODEL_OPTIONS if getattr(args, key) is not None]
    if given:
        raise BadInput(f"--{given[0].replace('_', '-')}: found without --from; allowed: with --from CONFIG")


def _plan(args: Namespace) -> tuple[str, list[str]]:
    """Return the text of the plan file made from a model's configuration, and its main figures in a few lines.

    `BadInput` names the options that are missing.
    """
    config = read_config(args.source, args.vocabulary)
    devices = args.devices or config.settings.get("devices")
    args.microbatches = args.microbatches or config.settings.get("microbatches")
    absent = missing(args, "microbatches", "hardware") + ([] if devices else ["--devices"])
    if absent or not devices:
        raise BadInput(*(f"{option}: missing; it is required with --from" for option in absent))
    wanted = wanted_of(args, devices, {key: getattr(args, key) for key in SIZES})
    text = plan_text(config, wanted, Path(args.source).name)
    return text, summary(plan_problem_from(read_yaml(text, args.source), args.source), config, wanted)


_MODEL_OPTIONS = ("devices", *OPTIONS, *SIZES)

COMMANDS.register(
    Command(
        "new",
        "a problem file to start from, or a plan file of a model's configuration",
        configure,
        run,
        Group.BEGIN,
        "new --from config.json --devices 16 --microbatches 64 --hardware h100-80gb -o model.yaml",
    )
)
