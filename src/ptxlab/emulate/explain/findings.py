"""Data races and reads of memory that no thread has written, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.abi import state
from ptxlab.emulate.abi.structs import Record
from ptxlab.emulate.explain.accesses import Party, are_companions, excuse, parties_of
from ptxlab.emulate.explain.barrier_faults import explain_not_invalidated
from ptxlab.emulate.explain.causes import without_consequences
from ptxlab.emulate.explain.missing_order import causes_of, other_lines
from ptxlab.emulate.explain.snapshots import block_name, companion
from ptxlab.emulate.explain.tensor_findings import explain_missing_fence, explain_tensor_race, name_cells, one
from ptxlab.emulate.runtime.order import reports, shadow
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import Launch

_DOES = {state.LOAD: "reads", state.STORE: "writes", state.ATOMIC: "changes"}
_DID = {state.LOAD: "read", state.STORE: "wrote", state.ATOMIC: "changed"}
_SPACES = {
    state.GLOBAL_SPACE: "global",
    state.SHARED_SPACE: "shared",
    state.LOCAL_SPACE: "local",
    state.CLUSTER_SPACE: "shared",
}


def explain_findings(launch: Launch) -> Iterator[Diagnostic]:
    """What the race detector has found, races first; what a race explains is not reported again."""
    # Only one core reports: where several find something, the launch is run again on one.
    (worker, *_) = launch.workers
    found = worker.findings
    numbers = range(worker.history.get("finding_count"))
    explain = {
        reports.RACE: _explain_race,
        reports.UNFENCED: _explain_unfenced,
        reports.UNFENCED_TENSOR: _explain_race,
        reports.COLLECTIVE_ONLY: _explain_race,
        reports.FAILED_ONLY: _explain_race,
    }
    kinds = [found.get("kind", number) for number in numbers]
    races = without_consequences(launch, found, [number for number in numbers if kinds[number] in explain])
    told = []
    for cause in causes_of(launch, found, races):
        diagnostic = explain[kinds[cause[0]]](launch, found, cause[0])
        told.append(replace(diagnostic, notes=(*diagnostic.notes, *other_lines(launch, found, cause))))
    yield from _most_severe(told)
    racing = {
        found.get(name, number)
        for number in numbers
        if kinds[number] in explain
        for name in ("instruction", "other_instruction")
    }
    for number in numbers:
        is_early = kinds[number] == reports.UNSTARTED and found.get("instruction", number) not in racing
        if is_early or kinds[number] == reports.EXITED:
            racing.add(found.get("instruction", number))
            yield _explain_absence(launch, found, number)
    yield from (explain_not_invalidated(launch, found, number) for number in numbers
                if kinds[number] == reports.NOT_INVALIDATED)  # fmt: skip
    for number in numbers:
        if kinds[number] == reports.UNWRITTEN and found.get("instruction", number) not in racing:
            yield _explain_unwritten(launch, found, number)
    if worker.history.get("unwatched"):
        yield warning(
            "incomplete-check",
            "some accesses were not checked for races: there is too little memory to track all of them",
            launch.compiled.module.name_span(launch.compiled.kernel),
            "this kernel",
            helps=["launch fewer blocks, with `blocks=`, or smaller arrays"],
        )


def _most_severe(found: list[Diagnostic]) -> Iterator[Diagnostic]:
    """Of several findings on the same lines one, an error if there is one; errors first."""
    kept: dict[tuple[int, ...], Diagnostic] = {}
    for diagnostic in sorted(found, key=lambda diagnostic: diagnostic.level):
        kept.setdefault(tuple(sorted(label.span.start for label in diagnostic.labels)), diagnostic)
    yield from kept.values()


def _explain_race(launch: Launch, found: Record, number: int) -> Diagnostic:
    earlier, later = parties_of(found, number)
    space = found.get("space", number)
    bytes = _bytes(launch, found, number)
    same_block = earlier.block == later.block
    same_thread = same_block and earlier.thread == later.thread
    kind = found.get("kind", number)
    is_race = kind != reports.UNFENCED_TENSOR
    is_late = earlier.is_copy  # it may be an operation issued before that is still in flight
    is_started = bool(found.get("is_started", number))
    if later.instruction < earlier.instruction and not same_thread and is_race and not is_started:
        # Which came first is chance: name them in the order of the file.
        earlier, later = later, earlier
    first = f"{_thread(launch, earlier.thread)} of {block_name(launch, earlier.block)}"
    second = f"{_thread(launch, later.thread)} of {'the same block' if same_block else block_name(launch, later.block)}"
    if space == state.TENSOR_SPACE:
        second = "the same thread" if same_thread else second
        if is_race:
            return explain_tensor_race(launch, earlier, later, first, second, bytes, is_started)
        return explain_missing_fence(launch, earlier, later, first, second, bytes)
    if earlier.is_copy:
        work = _work(launch, earlier)
        who = "a thread"
        if later.is_copy:
            who = f"another {work}" if _work(launch, later) == work else one(_work(launch, later))
        message = f"{who} {_DOES[later.kind]} {_SPACES[space]} memory that {one(work)} still {_DOES[earlier.kind]}"
        before = f"{first} {_began(launch, earlier)} {bytes}"
        what = f"before it waited for the {work}" if same_thread else f"before the {work} was known to be complete"
        did = _began(launch, later) if later.is_copy else _DID[later.kind]
        after = f"{'the same thread' if same_thread else second} {did} them {what}"
        notes = [_end(launch, earlier)]
    elif later.about & shadow.STALE or earlier.about & shadow.STALE:
        message = "a load through the non-coherent cache of memory that the kernel writes"
        before = f"{first} {_DID[earlier.kind]} {bytes}"
        after = f"{'the same thread' if same_thread else second} {_DID[later.kind]} them"
        notes = ["`.nc` is for memory that nothing writes while the kernel runs; no barrier makes it see new values"]
    else:
        message = f"unsynchronized: two threads write the same {_SPACES[space]} memory"
        if later.is_copy:
            access = f"{_DOES[later.kind]} {_SPACES[space]} memory that a thread {_DOES[earlier.kind]}"
            message = f"unsynchronized: {one(_work(launch, later))} {access}"
        elif state.LOAD in (earlier.kind, later.kind):
            message = f"unsynchronized: one thread reads {_SPACES[space]} memory that another writes"
        before = f"{first} {_DID[earlier.kind]} {bytes}"
        after = f"{second} {_began(launch, later) if later.is_copy else _DID[later.kind]} them"
        after += " too" if earlier.kind == later.kind else ""
        notes = [_end(launch, later) if is_late else _reason(launch, earlier, later)]
    tell, code, helps = error, "data-race", []
    if kind == reports.COLLECTIVE_ONLY:
        tell, code, notes = warning, "unordered-collective", [_COLLECTIVE]
        message = f"{message.removeprefix('unsynchronized: ')}, ordered only by a warp collective"
        helps = ["`bar.warp.sync` after the first of them orders lanes of a warp, and what they do for others"]
    elif kind == reports.FAILED_ONLY:
        tell, notes = warning, [*notes, _FAILED]
    elif reason := excuse(launch, earlier, later):
        tell, notes = warning, [*notes, reason]
    if launch.seed:
        notes.append(f"replay with `--seed {launch.seed}`")
    span = launch.span_of(earlier.instruction)
    others = [] if span is None else [Label(span, before)]
    if earlier.instruction == later.instruction:
        after, others = f"{before}, {after}", []
    return tell(code, message, launch.span_of(later.instruction), after, others=others, notes=notes, helps=helps)


_COLLECTIVE = (
    "`shfl`, `vote`, `match`, `redux`, `elect`, `mma`, `ldmatrix` and the like wait for lanes of a warp, "
    "but order no memory"
)
_FAILED = (
    "they are ordered if a `cas` that fails counts as a write, as in the manual's pseudo-code of `atom`; "
    "by its memory model (8.4), and in C++, it is a read and releases nothing"
)


# How threads know that an asynchronous operation is complete.
_END = {
    "cp.async": "the copy is complete for its thread after `cp.async.wait_group`, for others after a later barrier",
    "copy": "the copy is complete when its mbarrier completes, or after `cp.async.bulk.wait_group` in its own thread",
    "store": "the store is complete when its mbarrier completes",
    "MMA": "the MMA is complete after `wgmma.wait_group`",
}


def _work(launch: Launch, party: Party) -> str:
    """The asynchronous operation: a copy, a store to another block, or an MMA."""
    mnemonic = launch.compiled.places[party.instruction][1].opcode.mnemonic
    return {"wgmma": "MMA", "tcgen05": "MMA", "st": "store", "red": "store"}.get(mnemonic, "copy")


def _end(launch: Launch, party: Party) -> str:
    """How threads know that it is complete."""
    return _END[_work(launch, party) if party.is_work else "cp.async"]


def _began(launch: Launch, party: Party) -> str:
    """What a thread started: a copy to some bytes, or another operation that reads or writes them."""
    if party.is_work:
        return f"started {one(_work(launch, party))} that {_DOES[party.kind]}"
    return "started a copy to"


def _explain_unfenced(launch: Launch, found: Record, number: int) -> Diagnostic:
    """What a thread wrote may not be visible to the asynchronous operation that uses it."""
    earlier, later = parties_of(found, number)
    space = found.get("space", number)
    bytes = _bytes(launch, found, number)
    span = launch.span_of(earlier.instruction)
    wrote = f"{_thread(launch, earlier.thread)} of {block_name(launch, earlier.block)} {_DID[earlier.kind]} there"
    where = "the same block" if earlier.block == later.block else block_name(launch, later.block)
    fence = "fence.proxy.async.global" if space == state.GLOBAL_SPACE else "fence.proxy.async.shared::cta"
    return error(
        "missing-proxy-fence",
        f"{one(_work(launch, later))} {_DOES[later.kind]} {_SPACES[space]} memory written by a thread, "
        "with no proxy fence in between",
        launch.span_of(later.instruction),
        f"{_thread(launch, later.thread)} of {where} {_began(launch, later)} {bytes}",
        others=[] if span is None else [Label(span, wrote)],
        notes=["barriers order threads; asynchronous operations see what a thread wrote only after a proxy fence"],
        helps=[f"`{fence};` in every thread that writes, before the barrier that precedes the {_work(launch, later)}"],
    )


def _reason(launch: Launch, earlier: Party, later: Party) -> str:
    """Why two accesses are not ordered."""
    if earlier.about & later.about & shadow.STRONG:
        if (earlier.about ^ later.about) & shadow.SIZE:
            return "both are strong, but of different sizes: such accesses race as weak ones do"
        scope = ".cluster" if earlier.about & later.about & shadow.CLUSTER else ".cta"
        return f"both are strong, but the scope `{scope}` of one does not include the other thread"
    line = launch.name_line(later.instruction, later.instruction)
    other_line = launch.name_line(earlier.instruction, later.instruction)
    means = "no barrier, and no release/acquire pair"
    if earlier.block != later.block:
        means = "no release/acquire pair with scope `.gpu`"
        if are_companions(launch, earlier, later):
            means = "no `barrier.cluster`, and no release/acquire pair with scope `.cluster`"
    if line == other_line:
        return f"nothing orders what the two threads do in {line}: {means}"
    return f"nothing orders {other_line} before {line}: {means}"


def _explain_unwritten(launch: Launch, found: Record, number: int) -> Diagnostic:
    space = found.get("space", number)
    bytes = _bytes(launch, found, number)
    whose = "it has not written" if space == state.LOCAL_SPACE else "no thread has written"
    who = f"{_thread(launch, found.get('thread', number))} of {block_name(launch, found.get('block', number))}"
    return warning(
        "uninitialised-read",
        f"a thread reads {_memory(space)} that {whose}",
        launch.span_of(found.get("instruction", number)),
        f"{who} read {bytes}",
        helps=["write it first: it is not zero on a GPU"],
    )


def _bytes(launch: Launch, found: Record, number: int) -> str:
    """The bytes that a finding is about."""
    names = ("space", "address", "bytes", "block")
    return name_bytes(launch, *(found.get(name, number) for name in names))


def _explain_absence(launch: Launch, found: Record, number: int) -> Diagnostic:
    """Another block of the cluster may not be there when its shared memory is accessed."""
    is_late = found.get("kind", number) == reports.EXITED
    (_, party), address = parties_of(found, number), found.get("address", number)
    owner = block_name(launch, companion(launch, party.block, (address >> state.RANK_SHIFT) - 1))
    when = "may have exited" if is_late else "may not have started"
    return error(
        "exited-block" if is_late else "unstarted-block",
        f"a thread {_DOES[party.kind]} shared memory of another block that {when}",
        launch.span_of(party.instruction),
        f"{_thread(launch, party.thread)} of {block_name(launch, party.block)} {_DID[party.kind]} "
        f"{_bytes(launch, found, number)}",
        notes=[f"nothing makes {owner} {'stay until this is done' if is_late else 'start before this'}"],
        helps=[
            f"let all threads of the cluster synchronize at `barrier.cluster` {'after' if is_late else 'before'} it"
        ],
    )


def _memory(space: int) -> str:
    return "tensor memory" if space == state.TENSOR_SPACE else f"{_SPACES[space]} memory"


def _thread(launch: Launch, thread: int) -> str:
    x, y, _ = launch.block
    return f"thread ({thread % x},{thread // x % y},{thread // x // y})"


def name_bytes(launch: Launch, space: int, address: int, size: int, block: int | None = None) -> str:
    """Which bytes these are: `bytes 128..132 of tile`, with the name marked as code; `block` is who accesses them."""
    if space == state.TENSOR_SPACE:
        return name_cells(address, size)
    name, base, of = "", 0, ""
    if space == state.GLOBAL_SPACE:
        region = launch.regions.at(address)
        if region is not None:
            name, base = region.name, region.base
    elif space in (state.SHARED_SPACE, state.CLUSTER_SPACE):
        rank, address = address >> state.RANK_SHIFT, address & state.OFFSET_MASK
        name, base = layout.shared_variable_at(launch.compiled.variables, address)
        if block is not None and launch.cluster_size > 1:
            owner = companion(launch, block, rank - 1) if rank else block
            of = f" of {block_name(launch, owner)}"
    return f"bytes {address - base}..{address - base + size}" + (f" of {name}" if name else "") + of
