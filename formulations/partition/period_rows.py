"""Lower bounds on the period for every order, as rows of a partition's variables: load and micro-batches in flight.

They are the arguments of `solver/cyclic/period_bounds.py`, stated for all partitions at once. A period may be a
fraction of a tick: `value` is its whole ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from formulations.partition.chain_paths import ChainPaths
from pipesched.problem.quantities import DeviceId

# Memory that admits more micro-batches than this many times the devices limits no period beyond the loads: a round
# trip is no longer than the work of all devices, but for transfers.
_MOST_ROUNDS = 2


@dataclass(frozen=True)
class PeriodRows:
    """Rows that make `value`, the whole ticks of the period, at least every lower bound for this placement.

    `capacity` is the memory by device in the model's steps, None without a limit.
    """

    chain: ChainPaths
    value: cp_model.IntVar
    capacity: Sequence[int] | None

    def add(self) -> None:
        """Add all rows; those of load alone where the placement has several chains."""
        for device in range(self.chain.placement.devices):
            self._load(device)
        if self.chain.one_chain and self.capacity is not None:
            self._in_flight(self.capacity)

    def _load(self, device: DeviceId) -> None:
        """Add the row that n periods, for n chains, are at least a device's work on a micro-batch of each chain."""
        chains = len(self.chain.chains)
        work = sum(self.chain.model.terms[k].work for k in self.chain.positions(device))
        self.chain.model.cp.add(chains * self.value + chains - 1 >= work)

    def _in_flight(self, capacity: Sequence[int]) -> None:
        """Add rows for micro-batches in flight: where memory admits n to a stage, n periods are at least a round trip.

        A literal for each stage and each n from 1 on: `more` micro-batches than n fit the `capacity` of the stage's
        device, or n periods are a round trip.
        """
        cp, around = self.chain.model.cp, self.chain.paths().around
        for k, terms in enumerate(self.chain.model.terms):
            device = self.chain.placement.stage_device[self.chain.chains[0][k]]
            static, trip = self.chain.layers(device), terms.forward + around[k] + terms.gradient
            for n in range(1, _MOST_ROUNDS * self.chain.placement.devices + 1):
                more = cp.new_bool_var(f"more{k}.{n}")
                cp.add(static + (n + 1) * terms.activation <= capacity[device]).only_enforce_if(more)
                cp.add(n * self.value + n - 1 >= trip).only_enforce_if(~more)
