"""A copy of a stage that shares its parameters."""

from __future__ import annotations

import copy

from torch import nn


def twin(module: nn.Module) -> nn.Module:
    """A copy of a stage with separate buffers and state that shares the original's parameters."""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    return copy.deepcopy(module, shared)
