"""Kernels of schedules with a synchronization removed or weakened, and whether that is found.

A rule, a detector, or at least the answer must say that something is missing: else it was not needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

import ptxlab
from ptxlab.launch.launches import Launch
from ptxlab.report import KernelError
from ptxlab.schedule import Schedule

WAITS = (
    "bar.",
    "barrier.cluster.",
    "cp.async.commit",
    "cp.async.wait",
    "fence.",
    "mbarrier.arrive",
    "mbarrier.init",
    "tcgen05.commit",
    "tcgen05.fence",
    "tcgen05.wait",
    "wgmma.commit",
    "wgmma.fence",
    "wgmma.wait",
)
WEAKER = {"st.release.gpu": "st.relaxed.gpu", "ld.acquire.gpu": "ld.relaxed.gpu"}


def changed(text: str) -> dict[str, str]:
    """The PTX without each synchronization, or with a weaker one: what was changed, and the text."""
    lines = text.splitlines()
    found = {}
    for number, line in enumerate(lines):
        instruction = re.sub(r"^@!?%\w+ ", "", line.strip())
        weaker = [line.replace(one, weak) for one, weak in WEAKER.items() if instruction.startswith(one)]
        end = number + 1
        if "try_wait" in instruction:  # and the branch that goes back until the phase is complete
            assert " bra " in lines[end]
            end += 1
        elif "barrier.cluster.arrive" in line and "barrier.cluster.wait" in lines[end]:  # together, and each alone
            found[f"{number}: {instruction} and its wait"] = "\n".join([*lines[:number], *lines[end + 1 :]])
        elif not weaker and not instruction.startswith(WAITS):
            continue
        found[f"{number}: {instruction}"] = "\n".join([*lines[:number], *weaker, *lines[end:]])
    return found


def not_found(launch: Launch, outputs: list[int], texts: Mapping[str, str], seeds: int = 3) -> list[str]:
    """Those of changed texts in which no rule and no detector finds anything, and whose results are the same."""
    arrays = [getattr(one, "array", one) for one in launch.args]  # results can be stored by tensor maps
    given = [one.copy() if isinstance(one, np.ndarray) else None for one in arrays]

    def run(function: Any, seed: int) -> Any:
        for number, (one, before) in enumerate(zip(arrays, given, strict=True)):
            if before is not None and (seed == 0 or number in outputs):  # what is left in a workspace is for the next
                one[...] = before
        return function.launch(
            launch.grid, launch.block, launch.args, shared=launch.shared, cluster=launch.cluster, seed=seed
        )

    def is_found(text: str) -> bool:
        module = ptxlab.parse(text, name="changed.ptx")
        if ptxlab.check(module):
            return True
        for seed in range(seeds):
            try:
                found = run(module[launch.kernel.name], seed)
            except KernelError:
                return True
            if found.diagnostics:
                return True
            if any(not np.array_equal(arrays[n], one, equal_nan=True) for n, one in expected.items()):
                return True
        return False

    run(launch.kernel, 0)
    expected = {n: arrays[n].copy() for n in outputs}
    return [what for what, text in texts.items() if not is_found(text)]


def missed(s: Schedule, sizes: Mapping[str, int]) -> tuple[int, list[str]]:
    """How many synchronizations a schedule has, and those that nothing shows the lack of."""
    launch = s.launch_of(*s.arguments(sizes))
    names = [*s.algorithm.parameters]
    texts = changed(str(launch.kernel))
    return len(texts), not_found(launch, [names.index(name) for name in s.algorithm.outputs], texts)
