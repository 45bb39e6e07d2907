"""The command `serve`: a web page to edit a problem, compare schedules, solve, and download the results."""

from __future__ import annotations

import os
import webbrowser
from argparse import ArgumentParser, Namespace

from commands.options.values import seconds, whole
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import note, write_json
from pipesched.errors import BadInput
from pipesched.extras import to_install


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: address, names to allow, limits of solves and of idle time, `--open`, and `--json`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine)")
    parser.add_argument(
        "--port", type=whole(0, 65535), default=8765, help="port to listen on; 0: any free one (default: 8765)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which the page may be asked for, besides addresses and localhost",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--solves", type=whole(1, 64), default=2, metavar="N", help="solves at once, others wait (default: 2)"
    )
    parser.add_argument(
        "--workers", type=whole(1, 1024), metavar="N", help="most threads of a solve (default: half of the cores)"
    )
    parser.add_argument("--most-seconds", type=seconds, default=300.0, metavar="S", help="longest solve (default: 300)")
    parser.add_argument(
        "--most-cells",
        type=whole(1, 500_000),
        default=20_000,
        metavar="N",
        help="largest problem, in stages times micro-batches (default: 20000)",
    )
    parser.add_argument(
        "--idle",
        type=seconds,
        default=600.0,
        metavar="S",
        help="seconds after which a solve that nobody watches is ended and forgotten (default: 600)",
    )
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Print the page's address and serve it until interrupted.

    `BadInput` if a library that the page needs is not installed.
    """
    try:
        from web.server import is_loopback, serve
        from web.settings import Settings
    except ModuleNotFoundError as missing:
        raise BadInput(f"serve needs {missing.name}, which is not installed: {to_install('pipesched[web]')}") from None
    settings = Settings(
        hosts=frozenset(args.allow_host),
        cells=args.most_cells,
        seconds=args.most_seconds,
        workers=args.workers or max(1, (os.cpu_count() or 1) // 2),
        solves=args.solves,
        idle_seconds=args.idle,
    )

    def opened(url: str) -> None:
        if args.json:
            write_json({"url": url})
        else:
            print(f"pipesched: the page is at {url} (Ctrl-C ends it)", flush=True)
        if not is_loopback(args.host):
            note("note: others can reach this page too; it asks for no password")
        if args.open:
            webbrowser.open(url)

    serve(args.host, args.port, settings, opened)
    return Exit.DONE


COMMANDS.register(
    Command("serve", "the same in the browser: edit, compare, solve, download", configure, run, Group.ASK, "serve")
)
