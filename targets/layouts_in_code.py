"""The command `layouts` as a function: all layouts of a model on a number of devices, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.hardware_file import find_device, with_rates
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.files.model_configs.read_config import read_config
from pipesched.results.layouts import Layouts
from runtime.partitions.catalogue import PARTITION_FORMATS
from solver.limits import Limits, limits_from
from targets.layout_answer import answered
from targets.layout_race import MICROBATCH_SIZES, Batch


def layouts(
    config: str | Path | ModelConfig,
    *,
    gpus: int,
    hardware: str,
    microbatches: int | None = None,
    batch: int | None = None,
    microbatch_size: int | Sequence[int] | None = None,
    sequence: int | None = None,
    sizes: Mapping[str, int] | None = None,
    runtime: str | None = None,
    training: Mapping[str, Any] | None = None,
    node: int | None = None,
    rates: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    seconds: float | None = None,
    stop: Event | None = None,
) -> Layouts:
    """Return all layouts of a model on `gpus` devices, by step time in ms, with the one to use (`recommended`).

    `config` is a configuration, or the path of one, `hardware` a device's name or a hardware file. A step trains on
    `microbatches` micro-batches of all replicas together, or on a `batch` of sequences; give one of them.
    `microbatch_size` is the sequences of a micro-batch, by default that of the configuration or 1; with a `batch` it
    may be several to choose from, by default 1, 2 and 4. `sequence` is the tokens of a sequence, by default as in the
    configuration, else the model's longest up to 4096. `sizes` fixes sizes of parallelism by name (tensor, context,
    pipeline, data, expert), `runtime` asks for plans that it can run (None: any), `training` has keys of a plan file's
    section `model`. `node` is the number of devices of a node and `rates` replaces numbers of the device, by the keys
    of a hardware file or of a plan file's section `hardware`. `seconds` is the time limit, instead of that of `limits`;
    setting `stop` ends the search. `BadInput` if the model has no layout, or an argument is wrong.
    """
    if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1:
        raise BadInput(f"layouts: gpus: found {gpus!r}; allowed: a whole number of at least 1")
    unknown = sorted({*(sizes or {})} - {"tensor", "context", "pipeline", "data", "expert"})
    if unknown:
        raise BadInput(f"layouts: sizes: found {', '.join(unknown)}; allowed: tensor, context, pipeline, data, expert")
    limits = limits_from("layouts", limits, seconds)
    if runtime is not None:
        PARTITION_FORMATS[runtime]
    read = config if isinstance(config, ModelConfig) else read_config(str(config))
    name, device = find_device(hardware)
    asked = (microbatch_size,) if isinstance(microbatch_size, int) else microbatch_size
    default = MICROBATCH_SIZES if batch is not None else (read.settings.get("microbatch_size", 1),)
    rated = with_rates(device, {**(rates or {}), **({} if node is None else {"node": node})})
    wanted = Wanted(1, 1, name, rated.device, sequence, training=training or {}, rates=rated.of_plans)
    given: dict[str, int | None] = {**(sizes or {})}

    def seen(_number: int, _of: int, _best: Fraction | None) -> None:
        """Ignore progress, which a search in code does not print."""

    return answered(
        read, wanted, gpus, Batch(microbatches, batch, tuple(asked or default)), given, read.name, runtime, limits,
        seen, lambda _: None, stop or Event(), lambda: None,
    ).layouts  # fmt: skip
