"""Thread block clusters and grids: mapa, getctarank, griddepcontrol, clusterlaunchcontrol (PTX ISA 9.7.9, 9.7.13)."""

from ..form import Modifiers, form
from ..machine import AddressValue, Machine, Value
from ..operation import computes

# ptxas takes signed types as well.
ADDRESS = "u32 u64 s32 s64"


@form(
    "mapa{.space}.type d, a, b",
    space="shared::cluster",
    type=ADDRESS,
    types={"a": "type shared", "b": "u32"},
    since="7.8 sm_90",
)
@computes("address")
def mapa(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the address in block `b` of the cluster that corresponds to the shared memory address `a` of this block."""
    return k.address_in(a, b, m.space)


@form(
    "getctarank{.space}.type d, a",
    space="shared::cluster",
    type=ADDRESS,
    types={"d": "u32", "a": "type shared"},
    since="7.8 sm_90",
)
def getctarank(k: Machine, m: Modifiers, a: Value) -> Value:
    """Give the rank in the cluster of the block whose shared memory holds address `a`."""
    return k.rank_of(a)


@form("griddepcontrol.action", action="launch_dependents wait", since="7.8 sm_90")
def griddepcontrol(k: Machine, m: Modifiers) -> None:
    """Let the grids that depend on this one start, or wait until the grids it depends on are done."""
    if m.action == "wait":
        k.wait_for_grids()
    else:
        k.start_dependents()


@form(
    "clusterlaunchcontrol.try_cancel.async{.space}.mbarrier::complete_tx::bytes{.multicast}.b128 [a], [mbar]",
    space="shared::cta",
    multicast=(("multicast::cluster::all", "8.6 sm_100a sm_110a | 8.7 sm_120a | 8.8 sm_100f sm_110f sm_120f"),),
    types={"mbar": "space"},
    name="clusterlaunchcontrol.try_cancel.async",
    since="8.6 sm_100",
)
def try_cancel(k: Machine, m: Modifiers, a: AddressValue, mbar: AddressValue) -> None:
    """Ask to cancel the launch of a cluster that has not started, so that this one takes its work.

    The answer comes in the background; a barrier hears of its 16 bytes. It is for `clusterlaunchcontrol.query_cancel`
    alone: here its words are the three parts of a position, and whether there is one.
    """
    k.bulk.cancel(a, mbar, m.multicast is not None)


@form(
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 d, a",
    types={"d": "pred", "a": "b128"},
    name="clusterlaunchcontrol.query_cancel",
    since="8.6 sm_100",
)
def is_canceled(k: Machine, m: Modifiers, a: Value) -> Value:
    """Return whether a response says that a cluster was cancelled."""
    return k.unpack(a, "b32")[3] != 0


@form(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 d, a",
    types={"d": "4 b32 sink", "a": "b128"},
    name="clusterlaunchcontrol.query_cancel",
    since="8.6 sm_100",
)
@form(
    "clusterlaunchcontrol.query_cancel.dimension.b32.b128 d, a",
    dimension="get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z",
    types={"d": "b32", "a": "b128"},
    since="8.6 sm_100",
)
def first_ctaid(k: Machine, m: Modifiers, a: Value) -> Value | tuple[Value, ...]:
    """Give the position in the grid of the first block of the cluster that was cancelled."""
    words = k.unpack(a, "b32")
    if m.dimension is None:
        return *words[:3], k.constant("b32", 0)
    return words["xyz".index(m.dimension[-1])]
