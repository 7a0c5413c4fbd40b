"""Special registers, with ptxas as the judge of where each is available and how it is read."""

import pytest

from ptxlab.isa.special_registers import SPECIAL_REGISTERS, SpecialRegister, special_register
from ptxlab.isa.targets import TARGETS, Version

from ..tools import needs_ptxas
from .conformance import VERSIONS, ask, lower_target, newest_readable


def test_names_have_their_percent_sign() -> None:
    assert special_register("tid") is None
    assert special_register("%tid.x") is None
    found = special_register("%tid")
    assert found is not None
    assert (found.type.name, found.vector, found.shape) == ("u32", 4, "%u16|u32")


def test_there_are_as_many_as_the_manual_lists() -> None:
    assert len(SPECIAL_REGISTERS) == 87
    assert all(register.text for register in SPECIAL_REGISTERS.values())


def read(register: SpecialRegister, type: str | None = None, component: str = "x") -> str:
    """A `mov` that reads the register or one component of it."""
    name = type or register.type.name
    return f"mov.{name} %{name}_9, {register.name}{f'.{component}' if register.vector else ''};"


def refusals(lines: list[str], version: Version, target: str) -> list[str]:
    """The lines that ptxas refuses, but for the directive that two of the registers need beside them."""
    answers = ask(lines, version, target)
    return [
        line
        for line, messages in zip(lines, answers, strict=True)
        if any(".minperctamemory directive required" not in message for message in messages)
    ]


@needs_ptxas
@pytest.mark.parametrize("available", sorted({str(r.since) for r in SPECIAL_REGISTERS.values()}))
def test_ptxas_knows_each_from_its_version_and_target_on(available: str) -> None:
    registers = [r for r in SPECIAL_REGISTERS.values() if str(r.since) == available]
    ((version, chip),) = registers[0].since.alternatives
    version = max(version, TARGETS[str(chip)])
    if version > newest_readable():
        pytest.skip(f"no ptxas for PTX {version[0]}.{version[1]}")
    lines = [read(r) for r in registers]
    assert refusals(lines, version, str(chip)) == []
    earlier = VERSIONS[VERSIONS.index(version) - 1]
    if version > VERSIONS[0] and earlier >= TARGETS[str(chip)]:
        assert refusals(lines, earlier, str(chip)) == lines
    lower = lower_target(str(chip))
    if lower and TARGETS[lower] <= version:
        assert refusals(lines, version, lower) == lines


@needs_ptxas
def test_ptxas_reads_each_at_its_own_width_and_the_older_ones_at_their_old_width() -> None:
    registers = [r for r in SPECIAL_REGISTERS.values() if r.since.alternatives[0][0] <= (9, 0)]
    for name in ("b16", "b32", "b64", "pred"):
        fitting = [r for r in registers if _width(name) in {t.width for t in (*r.narrower, r.type)}]
        lines = [read(r, name) for r in registers]
        assert refusals(lines, (9, 0), "sm_90") == [read(r, name) for r in registers if r not in fitting], name


@needs_ptxas
def test_ptxas_takes_components_of_vectors_alone() -> None:
    vectors = [r for r in SPECIAL_REGISTERS.values() if r.vector]
    lines = [read(r, component=c) for r in vectors for c in "xyzwrgba"]
    assert refusals(lines, (9, 0), "sm_90") == []
    scalars = [
        r for r in SPECIAL_REGISTERS.values() if r.type.name == "u32" and not r.vector and "percta" not in r.name
    ]
    wrong = [f"mov.u32 %u32_9, {r.name}.x;" for r in scalars] + [f"mov.u32 %u32_9, {r.name};" for r in vectors]
    assert refusals(wrong, (9, 0), "sm_90") == wrong


def _width(name: str) -> int:
    return 1 if name == "pred" else int(name[1:])
