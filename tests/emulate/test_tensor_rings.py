"""Rings that TMA fills and `tcgen05.commit` frees: silent if they are right, found if synchronization is missing."""

import pytest

import ptxlab
from tests.emulate.tensor_rings import SYNCHRONIZATION, Ring

ALL = [
    Ring(stages=stages, buffers=buffers, blocks=blocks, **more)
    for stages in range(1, 7)
    for buffers in (1, 2)
    for blocks in (1, 2)
    for more in ({}, {"copies": True}, {"scaled": True}, {"scheduled": True, "tiles": 5})
    if blocks == 1 or ("scaled" not in more and "scheduled" not in more)
]
SAMPLE = [
    Ring(stages=1, buffers=2),
    Ring(stages=6),
    Ring(stages=2, blocks=2, copies=True),
    Ring(stages=3, buffers=2, scaled=True),
    Ring(stages=2, buffers=2, scheduled=True, tiles=5),
]


def silent(ring: Ring, seeds: int) -> None:
    for seed in range(seeds):
        is_right, found = ring.run(seed)
        assert not found, ptxlab.report.render(found)
        assert is_right


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("ring", SAMPLE, ids=lambda ring: ring.name)
def test_a_ring(ring: Ring) -> None:
    silent(ring, 3)


@pytest.mark.bulk
@pytest.mark.parametrize("ring", ALL, ids=lambda ring: ring.name)
def test_a_ring_under_many_seeds(ring: Ring) -> None:
    silent(ring, 50)


def test_waits_that_do_not_acquire_and_no_fence_before_the_arrival() -> None:
    """`tcgen05.wait::ld` is enough for the accumulators: CUTLASS leaves the fence after it out."""
    relaxed = SYNCHRONIZATION["wait done"].replace("parity.shared", "parity.relaxed.cluster.shared")
    for seed in range(4):
        assert Ring(edits=(("wait done", relaxed), ("fence loaded", ""))).run(seed) == (True, [])


LEFT_OUT = {
    "wait empty": "bad-barrier",
    "wait full": "data-race: an MMA reads shared memory that a copy still writes",
    "wait peer": "data-race: an MMA reads shared memory that a copy still writes",
    "wait read": "data-race: ",
    "wait done": "data-race: unsynchronized: a load reads tensor memory that an MMA writes",
    "wait load": "data-race: an MMA writes tensor memory that a load still reads",
    "commit stage": "hang",
    "commit tile": "hang",
}


IN_PAIRS = ("wait peer", "wait full", "wait read", "commit tile")


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(
    ("name", "blocks"),
    [*((name, 1) for name in LEFT_OUT if name != "wait peer"), *((name, 2) for name in IN_PAIRS)],
)
def test_synchronization_that_is_left_out(name: str, blocks: int) -> None:
    reported = set()
    for seed in range(3):
        _, found = Ring(blocks=blocks, edits=((name, ""),)).run(seed)
        assert any(diagnostic.level == "error" for diagnostic in found), ptxlab.report.render(found)
        reported |= {f"{diagnostic.code}: {diagnostic.message}" for diagnostic in found}
    assert any(text.startswith(LEFT_OUT[name]) for text in reported), reported
    if name == "wait load":
        said = "the thread that started the load does not wait for it before line"
        assert any(note.startswith(said) for diagnostic in found for note in diagnostic.notes)


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("commit stage", "mbarrier.arrive.shared::cta.b64 _, [%empty];", "shared memory that a"),
        (
            "commit tile",
            "mbarrier.arrive.shared::cta.b64 _, [%done];",
            "a load reads tensor memory that an MMA still",
        ),
    ],
)
def test_an_arrival_is_not_a_commit(name: str, line: str, message: str) -> None:
    for seed in range(4):
        _, found = Ring(edits=((name, line),)).run(seed)
        assert any(d.code == "data-race" and message in d.message for d in found), ptxlab.report.render(found)


@pytest.mark.parametrize("names", [("fence done",), ("fence read", "fence full")], ids=" and ".join)
def test_a_fence_that_is_left_out(names: tuple[str, ...]) -> None:
    for seed in range(4):
        is_right, found = Ring(edits=tuple((name, "") for name in names)).run(seed)
        assert is_right
        assert [(d.level, d.code) for d in found] == [("warning", "missing-tensor-fence")], ptxlab.report.render(found)


WAITS = {
    "wait full": ("%parity", "full", "data-race"),
    "wait done": ("%parity", "done", "data-race"),
    "wait empty": ("%other", "empt", "hang"),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_for_another_parity_names_itself(name: str) -> None:
    """The wait is a label of a hang, or a note of the race says which phase it was over by."""
    right, mbarrier, code = WAITS[name]
    wrong = SYNCHRONIZATION[name].replace(f"], {right};", f"], {'%parity' if right == '%other' else '%other'};")
    ring = Ring(edits=((name, wrong),))
    line = next(at for at, text in enumerate(ring.text().splitlines(), 1) if wrong.splitlines()[0] in text)
    _, found = ring.run(0)
    assert code in {diagnostic.code for diagnostic in found}
    text = ptxlab.report.render(found)
    if code == "data-race":
        assert f"the wait on line {line} was over at once, before phase 0 of the mbarrier `{mbarrier}" in text
    else:
        assert line in {label.span.source.position(label.span.start)[0] for one in found for label in one.labels}
