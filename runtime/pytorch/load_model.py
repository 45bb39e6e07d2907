"""Loading of the user's model: imports the function that `--model` names, calls it, and checks what it returns."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from torch import nn

from pipesched.errors import BadInput
from runtime.pytorch.models import PipelineModel
from runtime.pytorch.user_code import described


def load_model(name: str, stages: int, **options: object) -> PipelineModel:
    """Return the model made by `package.module:function`: `function(stages=S)` returns a `PipelineModel` of S stages.

    Of `options` (`dtype`, `seed`, ...) the function gets those that it has as parameters, or all if it takes any
    keyword. Modules in the working directory are found. Every process calls it: it must return the same parameters each
    time. `BadInput` for a name, result or number of stages that is wrong, for a parameter in two stages, and with the
    place where the user's code raised an error.
    """
    function = _function(name)
    taken = inspect.signature(function).parameters
    everything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    try:
        model = function(stages=stages, **{key: value for key, value in options.items() if everything or key in taken})
    except Exception as error:
        raise BadInput(*_raised(name, error)) from None
    if not isinstance(model, PipelineModel):
        raise BadInput(f"--model {name}: found a {type(model).__name__}; allowed: a pipesched.PipelineModel")
    if len(model.stages) != stages:
        raise BadInput(f"--model {name}: found {len(model.stages)} stages; the schedule needs {stages}")
    _no_shared_parameters(name, model)
    return model


def _function(name: str) -> Callable[..., object]:
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name):
        raise BadInput(f"--model: found {name!r}; allowed: package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise BadInput(f"--model {name}: cannot be imported: {error}", *described(error)[1:]) from None
    except Exception as error:
        raise BadInput(*_raised(name, error)) from None
    if not callable(function) or "stages" not in inspect.signature(function).parameters:
        raise BadInput(f"--model {name}: found no function with a parameter `stages`; allowed: function(stages=S)")
    made: Callable[..., object] = function
    return made


def _raised(name: str, error: Exception) -> list[str]:
    first, *where = described(error)
    return [f"--model {name}: raised {first}", *where]


def _no_shared_parameters(name: str, model: PipelineModel) -> None:
    """Raise `BadInput` for a parameter shared by two stages: each stage's process would train a copy of its own."""
    owner: dict[int, tuple[int, str]] = {}
    for number, stage in enumerate(model.stages):
        for name_here, parameter in stage.named_parameters() if isinstance(stage, nn.Module) else ():
            first, name_there = owner.setdefault(id(parameter), (number, name_here))
            if first != number:
                raise BadInput(
                    f"--model {name}: {name_there} of stage {first} and {name_here} of stage {number} are one parameter"
                    " (tied weights); stages are trained apart, and each would get only its own part of the gradient;"
                    " allowed: a parameter in one stage"
                )
