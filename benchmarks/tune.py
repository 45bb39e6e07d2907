"""Search for better defaults of parameters that tune a solve, with Optuna, on drawn problems; checked on a hidden seed.

    python -m benchmarks.tune BeamSchedules.width PoolParams.size --trials 20 --seed 70 --hidden 71

docs/parameters.md lists the parameters. Each trial solves the problems of one seed in a process of its own, each with a
counted amount of work, so that the load of the machine does not matter. At the end the default and the best values are
compared on the hidden seed, which no trial has seen: report that figure, never the one of the trials.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from typing import Any

from pipesched.errors import BadInput, did_you_mean
from solver.parameters import Tuned, override, parameter_classes, tuned_fields

PACKAGES = ("solver", "targets")
# A range of more than so many times its least value is searched by orders of magnitude.
_LOG_RANGE = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the search and print what it found."""
    args = _parser().parse_args(arguments)
    try:
        chosen = parameters(args.names)
    except BadInput as error:
        print(f"tune: {error}", file=sys.stderr)
        return 2
    print("trial | mean gap, % | values")
    best = _searched(args, chosen)
    own = {name: default for name, (default, _) in chosen.items()}
    rows = {"default": own, "best found": best}
    print(f"\nhidden seed {args.hidden}, {args.problems} problems, {args.work:g} units of work each")
    for label, values in rows.items():
        print(f"{label}: mean gap {100 * mean_gap(values, args.suite, args.hidden, args.problems, args.work):.3f} %")
    return 0


def parameters(names: Sequence[str]) -> dict[str, tuple[Any, Tuned]]:
    """Defaults and meanings of parameters by `CLASS.FIELD`; raises BadInput for others, and for tuples."""
    known = {
        f"{one.__name__}.{name}": entry
        for package in PACKAGES
        for one in parameter_classes(package)
        for name, entry in tuned_fields(one).items()
    }
    for name in names:
        if name not in known:
            raise BadInput(f"no parameter {name!r}{did_you_mean(name, known)}; docs/parameters.md lists all")
        if isinstance(known[name][0], tuple):
            raise BadInput(f"{name} has several values: only single numbers are searched")
    return {name: known[name] for name in names}


def mean_gap(values: Mapping[str, Any], suite: str, seed: int, problems: int, work: float) -> float:
    """Mean of (value - bound) / value over drawn problems, solved in a process where parameters have these values."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_solved, (dict(values), suite, seed, problems, work))


def _solved(values: Mapping[str, Any], suite: str, seed: int, problems: int, work: float) -> float:
    override(values)
    # Only now: modules read the values when they are imported.
    from benchmarks.random import SUITES
    from solver.limits import Limits
    from solver.solve import solve

    cases = [case for case, _ in zip(SUITES[suite](seed), range(problems), strict=False)]
    limits = Limits(seconds=600, workers=1, deterministic=work)
    gaps = [solve(case.problem, limits).gap for case in cases]
    return sum(1.0 if one is None else float(one) for one in gaps) / len(gaps)


def _searched(args: Namespace, chosen: Mapping[str, tuple[Any, Tuned]]) -> dict[str, Any]:
    """The best values of all trials; the first trial is that of the defaults."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=args.seed))
    study.enqueue_trial({name: default for name, (default, _) in chosen.items()})
    for number in range(args.trials):
        trial = study.ask()
        values = {name: _suggested(trial, name, *entry) for name, entry in chosen.items()}
        found = mean_gap(values, args.suite, args.seed, args.problems, args.work)
        study.tell(trial, found)
        print(f"{number} | {100 * found:.3f} | {values}", flush=True)
    return dict(study.best_params)


def _suggested(trial: Any, name: str, default: Any, tuned: Tuned) -> Any:
    log = tuned.low > 0 and tuned.high > _LOG_RANGE * tuned.low
    if isinstance(default, int):
        return trial.suggest_int(name, int(tuned.low), int(tuned.high), log=log)
    return trial.suggest_float(name, tuned.low, tuned.high, log=log)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m benchmarks.tune", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+", metavar="CLASS.FIELD")
    parser.add_argument("--suite", choices=("drawn", "tasks"), default="drawn")
    parser.add_argument("--seed", type=int, default=70, help="of the problems of the trials (default: 70)")
    parser.add_argument("--hidden", type=int, default=71, help="of the problems of the report (default: 71)")
    parser.add_argument("--problems", type=int, default=10, help="of each seed (default: 10)")
    parser.add_argument("--work", type=float, default=2.0, help="counted work of each solve (default: 2)")
    parser.add_argument("--trials", type=int, default=20, help="(default: 20)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
