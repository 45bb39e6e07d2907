"""`new`: writes a small problem file to start from, every line of it explained."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from commands.shared.catalogue import COMMANDS, Command, Exit
from commands.shared.file_arguments import add_json
from commands.shared.output import files_written, write_json
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole

TEXT = """\
# A small pipeline to start from: replace the numbers by those of your own, then `pipesched solve` this file.
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
  static: 24              # of it weights, gradients, optimizer; leave it out where capacity is for activations
  activation: 4           # one micro-batch on one stage, from its forward until its weights' gradient
objective: makespan       # or span, or period
"""


def configure(parser: ArgumentParser) -> None:
    """Where to write."""
    parser.add_argument("file", metavar="NAME", nargs="?", help="file to write (default: standard output)")
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print it, or write it where nothing is yet."""
    if args.file is None:
        print(TEXT, end="") if not args.json else write_json({"text": TEXT})
        return Exit.DONE
    path = Path(args.file)
    path = path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")
    if path.exists():
        raise BadInput(f"{path}: found one of this name already; allowed: another name, or this one once it is removed")
    write_whole(path, TEXT)
    if args.json:
        write_json({"files": [str(path)]})
    else:
        files_written([path])
    return Exit.DONE


COMMANDS.register(Command("new", "a small problem file to start from", configure, run))
