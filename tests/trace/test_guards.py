"""Registers that are written under guards: what a guard kept from being written is not there."""

import ptxlab
from ptxlab.trace.trace import Trace

# The guarded addition is the first of its segment; the loop turns five times, and the guard holds in two turns of them.
LOOP = """.version 8.0
.target sm_80
.address_size 64
.entry k() {
  .reg .b32 %n, %i; .reg .pred %p, %q;
  mov.u32 %n, 10;
  mov.u32 %i, 0;
  setp.eq.u32 %p, %i, 0;
again:
  @%p add.u32 %n, %n, 1;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 2;
  setp.lt.u32 %q, %i, 5;
  @%q bra again;
  ret;
}
"""


def recorded() -> Trace:
    trace = ptxlab.parse(LOOP)["k"].launch(1, 32, [], record=ptxlab.Record()).trace
    assert trace is not None
    return trace


def test_a_register_has_the_values_that_were_written() -> None:
    trace = recorded()
    assert [one.value for one in trace.history("%n", 3)] == [10, 11, 12]
    assert [one.value for one in trace.history("%i", 3)] == [0, 1, 2, 3, 4, 5]


def test_a_register_keeps_its_value_until_the_guard_holds_again() -> None:
    trace = recorded()
    found = [trace.registers(3, step=step) for step in range(trace.steps + 1)]
    seen = [int(registers["%n"]) for registers in found if "%n" in registers]
    assert list(dict.fromkeys(seen)) == [10, 11, 12]
    assert seen == sorted(seen)
