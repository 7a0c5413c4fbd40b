"""Barriers of a block and a cluster, and fences: bar, barrier, membar, fence (PTX ISA 9.7.13).

A barrier is named by a number from 0 to 15, and a thread count is a multiple of the warp size: ptxas checks both where
they are immediates. It knows `barrier` and `bar.warp.sync` from PTX 5.1 on, the manual from 6.0.
"""

from .form import form
from .vocabulary import SCOPE

# ptxas reads `.cta` only right after the mnemonic, as part of the name.
BARRIER = {"a": "u32 within(0..15)", "b": "u32 within(-4294967296..4294967264/32)"}
VALUED = BARRIER | {"c": "pred"}


@form("bar.sync a{, b}", types=BARRIER)  # the manual asks for sm_20 for registers and thread counts, ptxas does not
@form("bar.cta.sync a{, b}", types=BARRIER, since="7.8 sm_20")
@form("bar.arrive a, b", types=BARRIER, since="2.0 sm_20")
@form("bar.cta.arrive a, b", types=BARRIER, since="7.8 sm_20")
@form("bar.red.popc.u32 d, a{, b}, {!}c", types=VALUED, name="bar.red", since="2.0 sm_20")
@form("bar.red.op.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="2.0 sm_20")
@form("bar.cta.red.popc.u32 d, a{, b}, {!}c", types=VALUED, name="bar.cta.red", since="7.8 sm_20")
@form("bar.cta.red.op.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="7.8 sm_20")
@form("bar.warp.sync membermask", types={"membermask": "u32"}, since="5.1 sm_30")
def bar() -> None:
    """Wait until the warps of the block (or `b` threads) have arrived at barrier `a`; `.red` also reduces `c`."""


@form("barrier.sync{.aligned} a{, b}", types=BARRIER, name="barrier", since="5.1 sm_30")
@form("barrier.cta.sync{.aligned} a{, b}", types=BARRIER, name="barrier.cta", since="7.8 sm_30")
@form("barrier.arrive{.aligned} a, b", types=BARRIER, since="5.1 sm_30")
@form("barrier.cta.arrive{.aligned} a, b", types=BARRIER, since="7.8 sm_30")
@form("barrier.red.popc{.aligned}.u32 d, a{, b}, {!}c", types=VALUED, name="barrier.red", since="5.1 sm_30")
@form("barrier.red.op{.aligned}.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="5.1 sm_30")
@form("barrier.cta.red.popc{.aligned}.u32 d, a{, b}, {!}c", types=VALUED, name="barrier.cta.red", since="7.8 sm_30")
@form("barrier.cta.red.op{.aligned}.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="7.8 sm_30")
@form("barrier.cluster.arrive{.sem}{.aligned}", sem=[("release relaxed", "8.0 sm_90")], since="7.8 sm_90")
@form("barrier.cluster.wait{.acquire}{.aligned}", acquire=[("acquire", "8.0 sm_90")], since="7.8 sm_90")
def barrier() -> None:
    """Wait at barrier `a` thread by thread, not warp by warp; `.cluster` is one barrier for all blocks of a cluster."""


@form("membar.level", level=("cta gl", ("sys", "2.0 sm_20")), since="1.4")
@form("membar.proxy.alias", since="7.5 sm_60")
def membar() -> None:
    """Order this thread's memory accesses before it with those after it, as others at that level see them."""


# The manual asks for PTX 8.6 and sm_90 for `.acquire` and `.release`, ptxas does not.
@form("fence{.sem}.scope", sem="sc acq_rel acquire release", scope=SCOPE, since="6.0 sm_70")
@form("fence.acquire.sync_restrict::shared::cluster.cluster", name="fence", since="8.6 sm_90")
@form("fence.release.sync_restrict::shared::cta.cluster", name="fence", since="8.6 sm_90")
@form("fence.mbarrier_init.release.cluster", name="fence", since="8.0 sm_90")
@form("fence.proxy.alias", name="fence.proxy", since="7.5 sm_70")
@form("fence.proxy.async{.space}", space="global shared::cta shared::cluster", name="fence.proxy", since="8.0 sm_90")
@form("fence.proxy.tensormap::generic.release.scope", scope=SCOPE, name="fence.proxy", since="8.3 sm_90")
@form(
    "fence.proxy.tensormap::generic.acquire.scope [a], size",
    scope=SCOPE,
    types={"size": "imm(128)"},
    name="fence.proxy",
    since="8.3 sm_90",
)
@form(
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", name="fence.proxy", since="8.6 sm_90"
)
@form("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", name="fence.proxy", since="8.6 sm_90")
@form(
    "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster",
    name="fence.proxy",
    since="9.4 sm_90",
)
@form("fence.proxy.alias.sem.sys", sem="acquire release", name="fence.proxy", since="9.4 sm_90")
@form(
    "fence.proxy.pair.alias.sem.sys",
    pair="generic::fabric fabric::generic fabric::fabric",
    sem="acquire release acq_rel",  # ptxas takes `.acq_rel` as well
    name="fence.proxy",
    since="9.3 sm_100",
)
def fence() -> None:
    """Order memory accesses before it with those after it, for a scope, a kind of access or a pair of proxies."""
