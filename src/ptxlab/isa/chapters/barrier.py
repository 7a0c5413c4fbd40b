"""Barriers of a block and a cluster, and fences: bar, barrier, membar, fence (PTX ISA 9.7.13).

A barrier is named by a number from 0 to 15, and a thread count is a multiple of the warp size: ptxas checks both where
they are immediates. It knows `barrier` and `bar.warp.sync` from PTX 5.1 on, the manual from 6.0.
"""

from ..extent import addresses
from ..form import Modifiers, form, unknown
from ..machine import AddressValue, Machine, Value
from ..units.rearrangement import converge
from ..vocabulary import SCOPE

# ptxas reads `.cta` only right after the mnemonic, as part of the name.
BARRIER = {"a": "u32 within(0..15)", "b": "u32 within(-4294967296..4294967264/32)"}
VALUED = BARRIER | {"c": "pred"}


@form(
    "bar.sync a{, b}", types=BARRIER, effects="aligned"
)  # the manual asks for sm_20 for registers and thread counts, ptxas does not
@form("bar.cta.sync a{, b}", types=BARRIER, since="7.8 sm_20", effects="aligned")
def bar_sync(k: Machine, m: Modifiers, a: Value, b: Value | None) -> None:
    """Wait until all threads of the block (or `b` of them) have arrived at barrier `a`."""
    k.barrier(a, b)


@form("bar.arrive a, b", types=BARRIER, since="2.0 sm_20", effects="aligned")
@form("bar.cta.arrive a, b", types=BARRIER, since="7.8 sm_20", effects="aligned")
def bar_arrive(k: Machine, m: Modifiers, a: Value, b: Value) -> None:
    """Arrive at barrier `a`, which `b` threads come to, without waiting for the others."""
    k.barrier(a, b, waits=False)


@form("bar.red.popc.u32 d, a{, b}, {!}c", types=VALUED, name="bar.red", since="2.0 sm_20", effects="aligned uniform")
@form("bar.red.op.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="2.0 sm_20", effects="aligned uniform")
@form(
    "bar.cta.red.popc.u32 d, a{, b}, {!}c",
    types=VALUED,
    name="bar.cta.red",
    since="7.8 sm_20",
    effects="aligned uniform",
)
@form("bar.cta.red.op.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="7.8 sm_20", effects="aligned uniform")
def bar_red(k: Machine, m: Modifiers, a: Value, b: Value | None, c: Value) -> Value:
    """Wait at barrier `a`; return how many threads of it have a true `c`, or whether all or any of them do."""
    return _reduced(k, m, k.barrier(a, b, value=c))


def _reduced(k: Machine, m: Modifiers, found: Value) -> Value:
    if m.op is None:
        return k.cast(found >> 2, "u32")
    return found & (2 if m.op == "and" else 1) != 0


@form("bar.warp.sync membermask", types={"membermask": "u32"}, since="5.1 sm_30")
def bar_warp_sync(k: Machine, m: Modifiers, membermask: Value) -> None:
    """Wait until the lanes of `membermask` have arrived; what they wrote before is then known to all of them."""
    k.collect(converge, membermask, (), (), orders=True)


@form("barrier.sync{.aligned} a{, b}", types=BARRIER, name="barrier", since="5.1 sm_30")
@form("barrier.cta.sync{.aligned} a{, b}", types=BARRIER, name="barrier.cta", since="7.8 sm_30")
def barrier_sync(k: Machine, m: Modifiers, a: Value, b: Value | None) -> None:
    """Wait at barrier `a` until all threads (or `b` of them) have arrived, each by itself unless `.aligned`."""
    k.barrier(a, b)


@form("barrier.arrive{.aligned} a, b", types=BARRIER, since="5.1 sm_30")
@form("barrier.cta.arrive{.aligned} a, b", types=BARRIER, since="7.8 sm_30")
def barrier_arrive(k: Machine, m: Modifiers, a: Value, b: Value) -> None:
    """Arrive at barrier `a`, which `b` threads come to, without waiting for the others."""
    k.barrier(a, b, waits=False)


@form(
    "barrier.red.popc{.aligned}.u32 d, a{, b}, {!}c",
    types=VALUED,
    name="barrier.red",
    since="5.1 sm_30",
    effects="uniform",
)
@form("barrier.red.op{.aligned}.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="5.1 sm_30", effects="uniform")
@form(
    "barrier.cta.red.popc{.aligned}.u32 d, a{, b}, {!}c",
    types=VALUED,
    name="barrier.cta.red",
    since="7.8 sm_30",
    effects="uniform",
)
@form(
    "barrier.cta.red.op{.aligned}.pred d, a{, b}, {!}c", op="and or", types=VALUED, since="7.8 sm_30", effects="uniform"
)
def barrier_red(k: Machine, m: Modifiers, a: Value, b: Value | None, c: Value) -> Value:
    """Wait at barrier `a`; return how many threads of it have a true `c`, or whether all or any of them do."""
    return _reduced(k, m, k.barrier(a, b, value=c))


@form("barrier.cluster.arrive{.sem}{.aligned}", sem=[("release relaxed", "8.0 sm_90")], since="7.8 sm_90")
def barrier_cluster_arrive(k: Machine, m: Modifiers) -> None:
    """Arrive at the one barrier that all blocks of a cluster share, without waiting for the others."""
    k.cluster_barrier(waits=False, releases=m.sem != "relaxed")


@form("barrier.cluster.wait{.acquire}{.aligned}", acquire=[("acquire", "8.0 sm_90")], since="7.8 sm_90")
def barrier_cluster_wait(k: Machine, m: Modifiers) -> None:
    """Wait until all threads of the cluster that have not exited have arrived at the barrier of the cluster."""
    k.cluster_barrier(waits=True)


@form("membar.level", level=("cta gl", ("sys", "2.0 sm_20")), since="1.4")
def membar(k: Machine, m: Modifiers) -> None:
    """Order this thread's memory accesses before it with those after it, as others at that level see them."""
    k.fence(f"sc.{'gpu' if m.level == 'gl' else m.level}")


@form("membar.proxy.alias", since="7.5 sm_60")
def membar_proxy(k: Machine, m: Modifiers) -> None:
    """Order accesses to one memory under different addresses; here there is one address for each."""


# The manual asks for PTX 8.6 and sm_90 for `.acquire` and `.release`, ptxas does not.
@form("fence{.sem}.scope", sem="sc acq_rel acquire release", scope=SCOPE, since="6.0 sm_70")
def fence(k: Machine, m: Modifiers) -> None:
    """Order memory accesses before it with those after it, as the threads of a scope see them."""
    k.fence(f"{m.sem or 'acq_rel'}.{m.scope}")


@form("fence.mbarrier_init.release.cluster", name="fence", since="8.0 sm_90")
def fence_mbarrier_init(k: Machine, m: Modifiers) -> None:
    """Order the set-up of barriers before it with what other blocks of the cluster do to them."""
    k.fence("mbarrier_init.cluster")


@form("fence.proxy.alias", name="fence.proxy", since="7.5 sm_70")
def fence_proxy_alias(k: Machine, m: Modifiers) -> None:
    """Order accesses to one memory under different addresses; here there is one address for each."""


@form("fence.proxy.async{.space}", space="global shared::cta shared::cluster", name="fence.proxy", since="8.0 sm_90")
def fence_proxy_async(k: Machine, m: Modifiers) -> None:
    """Order ordinary memory accesses and those of asynchronous copies, before it with after it, in both directions."""
    k.fence_proxy(m.space)


@form("fence.acquire.sync_restrict::shared::cluster.cluster", name="fence", since="8.6 sm_90")
@form("fence.release.sync_restrict::shared::cta.cluster", name="fence", since="8.6 sm_90")
def fence_restricted(k: Machine, m: Modifiers) -> None:
    """Order accesses to the shared memory of a cluster before it with those after it."""
    k.fence("acquire.cluster" if m.acquire else "release.cluster")


@form(
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", name="fence.proxy", since="8.6 sm_90"
)
@form("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", name="fence.proxy", since="8.6 sm_90")
@form(
    "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster",
    name="fence.proxy",
    since="9.4 sm_90",
)
def fence_proxy_restricted(k: Machine, m: Modifiers) -> None:
    """Order accesses to the shared memory of a cluster before it with those after it, between two proxies."""
    k.fence_proxy("shared::cluster")
    k.fence("acquire.cluster" if m.acquire else "release.cluster")


@form("fence.proxy.tensormap::generic.release.scope", scope=SCOPE, name="fence.proxy", since="8.3 sm_90")
def fence_tensormap_release(k: Machine, m: Modifiers) -> None:
    """Release the changes of tensor maps before it, for acquires of these maps."""
    k.bulk.release_maps(m.scope)
    k.fence(f"release.{m.scope}")


@form(
    "fence.proxy.tensormap::generic.acquire.scope [a], size",
    scope=SCOPE,
    types={"size": "imm(128)"},
    name="fence.proxy",
    since="8.3 sm_90",
)
@addresses(a="128/64")
def fence_tensormap_acquire(k: Machine, m: Modifiers, a: AddressValue, size: int) -> None:
    """Acquire a tensor map in global memory: copies after it use the map as it was released, not an older one."""
    k.fence(f"acquire.{m.scope}")
    k.bulk.acquire_map(a, m.scope)


@form("fence.proxy.alias.sem.sys", sem="acquire release", name="fence.proxy", since="9.4 sm_90")
@unknown("it is not in the manual")
def fence_alias() -> None:
    """Taken by ptxas, but not in the manual."""


@form(
    "fence.proxy.pair.alias.sem.sys",
    pair="generic::fabric fabric::generic fabric::fabric",
    sem="acquire release acq_rel",  # ptxas takes `.acq_rel` as well
    name="fence.proxy",
    since="9.3 sm_100",
)
@unknown("it orders what several GPUs do to one memory")
def fence_fabric() -> None:
    """Order accesses to one memory under different addresses, of this GPU and of others on its fabric."""
