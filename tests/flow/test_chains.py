"""Which writes a read can see, and which reads see a write."""

import pytest

import ptxlab
from ptxlab.check.program import Program
from ptxlab.flow.chains import Chains


def values_of(body: str) -> tuple[Chains, int]:
    """The values of a kernel, and the first register that it writes."""
    text = f".version 8.0\n.target sm_80\n.entry k() {{ .reg .pred %p<4>; .reg .b32 %r<9>;\n{body}\n}}"
    values = Program(ptxlab.parse(text)).functions[0].chains
    return values, next(iter(values.writes))


def test_a_read_sees_the_writes_on_all_paths_to_it() -> None:
    values, register = values_of("mov.b32 %r1, 1; @%p1 bra A; mov.b32 %r1, 2; A: mov.b32 %r2, %r1; ret;")
    assert values.definitions(3, register) == (0, 2)
    assert values.definitions(2, register) == (0,)


def test_a_guarded_write_leaves_what_was_there() -> None:
    values, register = values_of("mov.b32 %r1, 1; mov.b32 %r1, 2; @%p1 mov.b32 %r1, 3; mov.b32 %r2, %r1; ret;")
    assert values.definitions(3, register) == (1, 2)


def test_a_write_in_a_loop_comes_round() -> None:
    values, register = values_of("mov.b32 %r1, 1; L: add.u32 %r1, %r1, 1; @%p1 bra L; ret;")
    assert values.definitions(1, register) == (0, 1)


def test_the_one_write_is_that_of_the_block_or_of_the_function() -> None:
    values, register = values_of(
        "mov.b32 %r1, 1; @%p1 bra A; mov.b32 %r1, 2; mov.b32 %r2, %r1; A: mov.b32 %r3, %r1; ret;"
    )
    assert values.definition(3, register) == 2
    assert values.definition(4, register) is None
    assert values.only_write(register) is None
    values, register = values_of("mov.b32 %r1, 1; @%p1 bra A; mov.b32 %r2, %r1; A: mov.b32 %r3, %r1; ret;")
    assert values.definition(3, register) == values.only_write(register) == 0


def test_the_uses_of_a_write_end_at_the_next_one() -> None:
    values, register = values_of("mov.b32 %r1, 1; add.u32 %r1, %r1, 2; mov.b32 %r2, %r1; mov.b32 %r3, %r1; ret;")
    assert values.uses(0, register) == [1]
    assert values.uses(1, register) == [2, 3]


def test_what_goes_into_a_register_is_found_through_loops() -> None:
    values, first = values_of(
        "mov.b32 %r1, 1; mov.u32 %r2, %tid.x; add.u32 %r3, %r1, %r2; mov.u32 %r4, %ctaid.x;"
        "L: add.u32 %r5, %r3, %r6; add.u32 %r6, %r5, %r4; add.u32 %r7, %r7, %r3; @%p1 bra L; "
        "ld.shared.u32 %r8, [%r1]; ret;"
    )
    registers = range(first, first + 8)  # %r1 to %r8
    assert [values.is_constant(one) for one in registers] == [True] + 7 * [False]
    assert [values.is_positional(one) for one in registers] == [True, True, True, False, False, False, True, False]


def test_each_instruction_is_asked_once_what_it_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    brings = Chains._brings
    monkeypatch.setattr(Chains, "_brings", lambda self, at, allowed: asked.append(at) or brings(self, at, allowed))
    sums = " ".join(f"add.u32 %r{n % 8 + 1}, %r{(n + 1) % 8 + 1}, 1;" for n in range(200))
    values, first = values_of(f"mov.u32 %r1, %ctaid.x; {sums} ret;")
    assert not any(values.is_positional(first + n) for n in range(8))
    assert len(asked) == 202
