"""Where the threads and variables of a test are on a device: every way that is as the test says.

Threads of one CTA are warps of a block, or lanes of one warp. Variables are in global memory, or in the shared memory
of a block that all threads can reach. Blocks of one GPU may be in a cluster. Threads of several GPUs are on those of a
node, or blocks of several clusters: `.gpu` then becomes `.cluster`, `.sys` becomes `.gpu`, and `.cluster` becomes
`.cta`, since each CTA of such a test is a cluster of its own, so that each scope includes the threads that it includes
in the test.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.litmus.program import Barrier, ClusterBarrier, Instruction, Litmus, Load, Operand, ProxyFence, Thread

NARROWER = {"cta": "cta", "cluster": "cta", "gpu": "cluster", "sys": "gpu"}
MOST_BLOCKS = 8  # of a cluster
MOST_LANES = 32


@dataclass(frozen=True)
class Placement:
    """One way to place a test: `lanes` of a warp or warps; `shared` or global memory; blocks in clusters or not."""

    lanes: bool
    shared: bool
    clusters: tuple[tuple[tuple[int, ...], ...], ...]  # of each cluster, its blocks, each by the position of its CTA
    clustered: bool
    narrowed: bool  # several GPUs became clusters
    gpus: tuple[int, ...] = ()  # of each GPU of a node, how many of the blocks it has; none: all are on one GPU

    def __str__(self) -> str:
        units = "lanes" if self.lanes else "warps"
        blocks = sum(map(len, self.clusters))
        grid = f"{blocks} blocks" if blocks > 1 else "1 block"
        if self.gpus:
            grid = f"{len(self.gpus)} GPUs"
        elif self.clustered:
            grid = f"{len(self.clusters)} clusters of {self.cluster_size}" if len(self.clusters) > 1 else "1 cluster"
        return f"{units}, {grid}, {'shared' if self.shared else 'global'}"

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster, some perhaps without a thread of the test."""
        return max(map(len, self.clusters)) if self.clustered else 1

    @property
    def blocks(self) -> list[tuple[int, ...] | None]:
        """The blocks of one instance of the test in order, each by its CTA's position."""
        size = self.cluster_size
        return [block for one in self.clusters for block in (*one, *[None] * (size - len(one)))]

    def scope(self, scope: str) -> str:
        """The scope on the device for one of the test."""
        return NARROWER[scope] if self.narrowed else scope


def why_not(test: Litmus) -> str | None:
    """Why a test can't be run, only judged; none if it can."""
    for thread in test.threads:
        for one in thread.instructions:
            if getattr(one, "proxy", "generic") != "generic" or isinstance(one, ProxyFence):
                return f"`{one.span.text}` needs the {getattr(one, 'proxy', 'alias')} proxy"
            if getattr(one, "operation", None) in ("mul", "div") and hasattr(one, "scope"):
                return f"PTX has no atomic `{getattr(one, 'operation', '')}`"
    if any(variable.location != name for name, variable in test.variables.items()):
        return "it has aliases"
    for thread, one in _instructions(test, Barrier):
        assert isinstance(one, Barrier)
        if one.count is None and constant(thread, one.number) is None:
            return f"for which threads `{one.span.text}` is depends on what is read"
    if not placements(test):
        return "no placement is as it says"
    return None


def placements(test: Litmus) -> list[Placement]:
    """All ways to place a test, the plain one first: warps of blocks, and global memory."""
    narrowed = len({thread.position.gpu for thread in test.threads}) > 1
    if narrowed and _has_clusters(test):
        return _spread(test)
    explicit = narrowed or _has_clusters(test)
    level = "gpu" if narrowed else "cluster"
    groups: dict[tuple[int, ...], dict[tuple[int, ...], None]] = {}
    for thread in test.threads:
        groups.setdefault(thread.position.at(level), {})[thread.position.at("cta")] = None
    apart = tuple(tuple(blocks) for blocks in groups.values())
    together = (tuple(block for one in apart for block in one),)
    grids = [(apart, explicit)]
    scoped = any(getattr(one, "scope", None) == "cluster" for thread in test.threads for one in thread.instructions)
    if not explicit and not scoped and 1 < len(together[0]) <= MOST_BLOCKS:
        grids.append((together, True))
    found = [
        placement
        for clusters, clustered in grids
        for shared in (False, True)
        for lanes in (False, True)
        if _fits(test, placement := Placement(lanes, shared, clusters, clustered, narrowed))
    ]
    return [*found, *_spread(test)] if narrowed else found


def _spread(test: Litmus) -> list[Placement]:
    """The ways to place a test on the GPUs of a node."""
    clustered = _has_clusters(test)
    gpus: dict[int, dict[tuple[int, ...], dict[tuple[int, ...], None]]] = {}
    for thread in test.threads:
        clusters = gpus.setdefault(thread.position.gpu, {})
        clusters.setdefault(thread.position.at("cluster" if clustered else "cta"), {})[thread.position.at("cta")] = None
    apart = [tuple(tuple(blocks) for blocks in clusters.values()) for clusters in gpus.values()]
    size = max(len(blocks) for clusters in apart for blocks in clusters) if clustered else 1
    counts = tuple(len(clusters) * size for clusters in apart)
    every = tuple(blocks for clusters in apart for blocks in clusters)
    placed = [Placement(lanes, False, every, clustered, narrowed=False, gpus=counts) for lanes in (False, True)]
    return [placement for placement in placed if _fits(test, placement)]


def _fits(test: Litmus, placement: Placement) -> bool:
    if placement.cluster_size > MOST_BLOCKS:
        return False
    if placement.shared and (len(placement.clusters) > 1 or _instructions(test, ClusterBarrier)):
        return False
    if not placement.shared and any(variable.expected is not None for variable in test.variables.values()):
        return False  # mbarriers are in shared memory
    waiting = {thread.position.at("cta") for thread, one in _instructions(test, Load) if _waits(test, one)}
    if not waiting <= {placement.blocks[0]}:
        return False  # only threads of its own block wait on one
    if not placement.lanes:
        return True
    ctas = [thread.position.at("cta") for thread in test.threads]
    widest = max(ctas.count(cta) for cta in ctas)
    return 1 < widest <= MOST_LANES and not _instructions(test, Barrier)


def constant(thread: Thread, operand: Operand) -> int | None:
    """The value of an operand that no instruction of the thread changes."""
    if isinstance(operand, int):
        return operand
    written = any(getattr(one, "register", None) == operand for one in thread.instructions)
    return None if written else thread.initial.get(operand, 0)


def _waits(test: Litmus, one: Instruction) -> bool:
    return isinstance(one, Load) and test.variables[one.variable].expected is not None


def _has_clusters(test: Litmus) -> bool:
    return any(thread.position.cluster >= 0 for thread in test.threads) or bool(_instructions(test, ClusterBarrier))


def _instructions(test: Litmus, kind: type[Instruction]) -> list[tuple[Thread, Instruction]]:
    return [(thread, one) for thread in test.threads for one in thread.instructions if isinstance(one, kind)]
