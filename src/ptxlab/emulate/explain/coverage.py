"""The schedule by which a launch ran, as its workers have counted it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.device.coverage import Schedule
from ptxlab.emulate.abi.structs import StructArray

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_MASK = (1 << 64) - 1


def schedule_of(launch: RunningLaunch) -> Schedule:
    """The schedule by which a launch ran."""
    searches: Sequence[StructArray] = [worker.record.part("search") for worker in launch.workers]
    return Schedule(
        launch.seed,
        sum(search.get("traces") for search in searches) & _MASK,
        max(search.get("points") for search in searches),
        max(search.get("threads") for search in searches),
    )
