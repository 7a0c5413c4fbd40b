"""Kernels that people write, with what orders their threads taken away: each must be found to race."""

import re

import numpy as np
import pytest

import ptxlab
from tests.emulate.kernels import CASES, Case

ORDER = {
    "block": r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?\s[^;]*;",
    "warp": r"bar\.warp\.sync[^;]*;",
    "fence": r"(?:membar|fence)\.[^;]*;",
    "copy": r"cp\.async\.wait_[^;]*;",
    "cluster": r"barrier\.cluster\.[^;]*;",
}
# Here nothing races: what `last_block_sum` reads without order is volatile on both sides, so that it may be stale, but
# not torn; these copies are waited for through an mbarrier; and the lanes of `wmma_half_sums` meet to load matrices.
ORDERED_OTHERWISE = {
    ("last_block_sum", "fence"),
    ("pipeline_sums", "copy"),
    ("copies_on_barrier", "copy"),
    ("wmma_half_sums", "warp"),
}


def variants() -> list[tuple[Case, str]]:
    """Each kernel once, in the first of its builds, with each kind of order that it has."""
    found: dict[tuple[str, str], Case] = {}
    for case in CASES:
        name = case.name.partition("-")[0]
        for kind in sorted(case.synchronizes & set(ORDER)):
            if (name, kind) not in ORDERED_OTHERWISE:
                found.setdefault((name, kind), case)
    return [(case, kind) for (_, kind), case in found.items()]


def take_away(text: str, kind: str) -> str:
    """The text without the instructions that order; releases and acquires become relaxed."""
    text = re.sub(rf"(@!?%\w+\s+)?{ORDER[kind]}", "", text)
    if kind == "fence":
        text = re.sub(r"\.(?:acquire|release|acq_rel)\.(cta|cluster|gpu|sys)\b", r".relaxed.\1", text)
        text = re.sub(r"\.(cta|cluster|gpu|sys)\.(?:acquire|release|acq_rel)\b", r".\1.relaxed", text)
    return text


@pytest.mark.bulk(one_in=5)
@pytest.mark.parametrize(("case", "kind"), variants(), ids=lambda value: getattr(value, "name", value))
def test_a_race_is_found(case: Case, kind: str) -> None:
    text = case.path.read_text()
    module = ptxlab.parse(take_away(text, kind), name=case.path.name)
    found = []
    for launch in case.make(np.random.default_rng(0)).launches:
        grid = launch.grid if isinstance(launch.grid, tuple) else (launch.grid,)
        block = launch.block if isinstance(launch.block, tuple) else (launch.block,)
        result = module[launch.entry].launch(
            grid,
            block,
            launch.args,
            shared=launch.shared,
            cluster=launch.cluster,
            device="cpu",
            on_error="collect",
            timeout=20,
            seeds=8,  # with seed 0, the thread that initializes a semaphore also releases it before others look
        )
        found += [(diagnostic.level, diagnostic.code) for diagnostic in result.diagnostics]
    assert ("error", "data-race") in found
