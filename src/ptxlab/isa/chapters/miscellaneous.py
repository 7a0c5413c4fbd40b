"""Miscellaneous instructions (PTX ISA 9.7.19)."""

from ..form import Modifiers, form
from ..machine import Machine, Value
from ..units.rearrangement import converge
from ..units.warp_mma import ALL_LANES


@form("brkpt", since="1.0 sm_11")
def brkpt(k: Machine, m: Modifiers) -> None:
    """Stop for a debugger; without one, continue."""


@form("nanosleep.u32 t", types={"t": "u32"}, since="6.2 sm_70")  # the manual says 6.3, ptxas 6.2
def nanosleep(k: Machine, m: Modifiers, t: Value) -> None:
    """Suspend the thread for about `t` nanoseconds, between zero and twice as long, at most a millisecond."""
    k.rest()


@form("pmevent a", types={"a": "imm(0..15)"}, since="1.4")
@form("pmevent.mask a", types={"a": "imm(0..65535)"}, name="pmevent.mask", since="3.0 sm_20")
def pmevent(k: Machine, m: Modifiers, a: int) -> None:
    """Trigger a performance monitor event by its number, or several by a mask."""


@form("trap", effects="trap")
def trap() -> None:
    """Abort the kernel and report it to the host."""


_SETMAXNREG = "8.0 sm_90a | 8.6 sm_100a sm_101a | 8.7 sm_120a | 8.8 sm_100f sm_101f sm_120f"


@form("setmaxnreg.inc.sync.aligned.u32 count", types={"count": "imm(24..256/8)"}, since=_SETMAXNREG,
      name="setmaxnreg.inc", effects="more-registers")  # fmt: skip
def take_registers(k: Machine, m: Modifiers, count: int) -> None:
    """Raise how many registers each thread of the warp owns, and wait until the block has as many to give."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.set_registers(count, more=True)


@form("setmaxnreg.dec.sync.aligned.u32 count", types={"count": "imm(24..256/8)"}, since=_SETMAXNREG,
      name="setmaxnreg.dec", effects="fewer-registers")  # fmt: skip
def give_registers(k: Machine, m: Modifiers, count: int) -> None:
    """Lower how many registers each thread of the warp owns; the others go to the pool of the block."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.set_registers(count, more=False)
