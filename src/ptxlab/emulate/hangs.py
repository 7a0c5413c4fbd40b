"""Threads that wait for what never happens, in words: who waits where, for what, and where the others are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate import layout, state
from ptxlab.emulate.findings import name_bytes
from ptxlab.emulate.record import Record
from ptxlab.emulate.runtime import phases
from ptxlab.emulate.spinning import Spin, looked_at, spin_around
from ptxlab.emulate.standing import SPINS, WAITING, Stand, Standing, block_name, do, ranges
from ptxlab.isa.mbarrier import ARRIVALS
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.running import Launch

Group = list[Standing]


def explain_hang(launch: Launch, stand: Stand) -> Diagnostic:
    """Why the cluster cannot go on: what a block waits for, and who waits for that at the barrier of the cluster."""
    found = _explain_block(launch, stand)
    waiting = [
        (other, group)
        for other in (stand, *stand.cluster)
        for group in _groups([thread for thread in other.threads if thread.status == state.AT_CLUSTER])
    ]
    if not waiting:
        return found
    told = {label.span for label in found.labels}
    labels = [
        Label(span, _wait(launch, other, group, f" of {other.name}"))
        for other, group in waiting
        if (span := launch.span_of(group[0].instruction)) is not None and span not in told
    ]
    alive = [thread for other in (stand, *stand.cluster) for thread in other.threads if thread.status != state.DONE]
    came = sum(thread.arrival != 0 for thread in alive)
    note = f"{came} of {len(alive)} threads of the cluster have come to its barrier; who has exited is not waited for"
    return replace(found, labels=(*found.labels, *labels[:1]), notes=(*found.notes[:1], note))


def _explain_block(launch: Launch, stand: Stand) -> Diagnostic:
    """Why a block cannot go on."""
    alive = [thread for thread in stand.threads if thread.status != state.DONE]
    spins = {place: spin_around(launch, place) for place in {thread.instruction for thread in alive}}
    stuck = [_stuck(launch, thread, spins[thread.instruction], stand.is_still) for thread in alive]
    waiting = [thread for thread in stuck if thread.status in WAITING]
    for warp in sorted({thread.warp for thread in waiting}):
        lanes = [thread for thread in waiting if thread.warp == warp]
        apart = len({(thread.instruction, thread.members * (thread.status == state.MEETING)) for thread in lanes}) > 1
        if apart and any(_is_together(launch, thread) for thread in lanes):
            return explain_divergence(launch, stand, lanes)
    groups = _groups(stuck)
    causes = ((state.AT_PHASE, _explain_phase), (SPINS, _explain_spin), (state.AT_PRODUCTS, _explain_products))
    for status, explain in causes:
        for group in groups:
            if group[0].status == status:
                return explain(launch, stand, group, groups)
    groups.sort(key=lambda group: group[0].status == state.AT_CLUSTER)  # it waits for what the others wait for
    return _explain_barrier(launch, stand, groups)


def _stuck(launch: Launch, thread: Standing, spin: Spin | None, is_still: bool) -> Standing:
    """What a thread does in vain, for all that it runs now and then: it asks for a phase, or goes round a loop."""
    if thread.status in WAITING and not (is_still and thread.ran):
        return thread
    if thread.asked:
        return replace(thread, status=state.AT_PHASE, instruction=thread.asked - 1)
    if spin is None or spin.look is None:
        return replace(thread, status=SPINS, waits_at=0)
    return replace(thread, status=SPINS, instruction=spin.look, waits_at=looked_at(launch, thread, spin) or 0)


def explain_divergence(launch: Launch, stand: Stand, lanes: Group, culprit: Standing | None = None) -> Diagnostic:
    """Why lanes of one warp, which shall meet, do not."""
    first = culprit or next(thread for thread in lanes if _is_together(launch, thread))
    groups = _groups(lanes)
    groups.sort(key=lambda group: first.number not in [thread.number for thread in group])
    opcode = _instruction(launch, first).opcode
    exited = [thread for thread in stand.threads if thread.warp == first.warp and thread.status == state.DONE]
    if len(groups) == 1 and exited:
        message = f"lanes of one warp have exited before `{opcode.text}`, which is for whole warps"
        helps = ["keep every lane until the last such instruction, and guard what it loads and stores instead"]
    elif first.status == state.MEETING:
        message = f"lanes of one warp wait in `{opcode.text}` for others that stand elsewhere"
        helps = ["move it out of the branch: all lanes execute the same one" if "aligned" in opcode.modifiers else
                 "let all lanes of the mask execute it together, or name only those that do"]  # fmt: skip
    else:
        message = f"lanes of one warp stand at different instructions, while `{opcode.text}` is for whole warps"
        other = "barrier.sync" if first.status == state.AT_BARRIER else f"barrier.{'.'.join(opcode.modifiers[:2])}"
        helps = [f"move the barrier out of the branch, or use `{other}` without `.aligned`"]
    notes = [do(exited, stand.threads, "has exited", "have exited")] if exited else []
    return error(
        "barrier-divergence",
        message,
        launch.span_of(first.instruction),
        _wait(launch, stand, groups[0], f" of {stand.name}"),
        others=_labels(launch, stand, groups[1:]),
        notes=notes,
        helps=helps,
    )


def _explain_phase(launch: Launch, stand: Stand, group: Group, groups: list[Group]) -> Diagnostic:
    offset = group[0].waits_at
    notes_on = stand.phase(offset)
    bits = stand.shared_word(offset)
    expected = bits >> phases.EXPECTED & ARRIVALS
    pending = bits & ARRIVALS
    bytes = bits >> phases.BYTES & phases.BYTES_MASK
    bytes -= (bytes >> 20) << 21
    came = max(expected - pending, 0)
    others = _labels(launch, stand, [other for other in groups if other is not group])
    by = copied = ""
    phase = str(group[0].waits_for & 1)
    if notes_on is not None:
        phase = str(notes_on.get("completed"))
        text = f"expects {expected} arrival{'s' * (expected != 1)} a phase"
        span = launch.span_of(notes_on.get("instruction"))
        if span is not None:
            others.insert(0, Label(span, text))
        if came:
            line = launch.line_of(notes_on.get("arrived_at"))
            who = f"thread {notes_on.get('arrived_by')}"
            if notes_on.get("arrived_from") != stand.number:
                who += f" of {block_name(launch, notes_on.get('arrived_from'))}"
            by = f" (line {line}, {who})" if line is not None else ""
        if notes_on.get("copies"):
            copied = f"brought {notes_on.get('copied')} bytes in this phase"
            span = launch.span_of(notes_on.get("copied_at"))
            if span is not None:
                others.insert(0, Label(span, f"{_copies(notes_on.get('copies'))} {copied}"))
    notes = [f"{came} of {expected} arrivals came{by}; {_outstanding(bytes)}; no running thread or copy can arrive"]
    notes += _exited(stand)
    helps = []
    if pending:
        helps = [f"initialise the barrier with {came}, or let {pending} more arrive" if came else
                 f"let {pending} thread{'s' * (pending > 1)} arrive, or wait for another phase"]  # fmt: skip
    elif bytes and copied:
        helps = [f"expect as many bytes as are copied: the copies {copied}"]
    elif bytes:
        helps = ["begin a copy of so many bytes that tells this mbarrier, or expect no bytes"]
    return error(
        "hang",
        f"{_threads(group)} for a phase that never completes",
        launch.span_of(group[0].instruction),
        _wait(launch, stand, group, f" of {stand.name}", f"phase {phase} of "),
        others=others[:3],
        notes=notes[:2],
        helps=helps,
    )


def _outstanding(bytes: int) -> str:
    if bytes > 0:
        return f"it expects {bytes} more bytes"
    return f"{-bytes} bytes more than it expects have come" if bytes else "0 bytes are outstanding"


def _copies(count: int) -> str:
    return "one copy" if count == 1 else f"this copy and {count - 1} before it"


def _mbarrier(launch: Launch, offset: int) -> str:
    """`the mbarrier full`, with the name marked as code"""
    name, start = layout.shared_variable_at(launch.compiled.variables, offset)
    if name and start == offset:
        return f"the mbarrier {name}"
    return f"the mbarrier at byte {offset - start} of {name or 'shared memory'}"


def _explain_spin(launch: Launch, stand: Stand, group: Group, groups: list[Group]) -> Diagnostic:
    place = group[0].instruction
    others = _labels(launch, stand, [other for other in groups if other is not group])
    spin = spin_around(launch, place)
    span = None if spin is None else launch.span_of(spin.start)
    if span is not None and span != launch.span_of(place):
        others.append(Label(span, "the loop begins here"))
    blocks = f"; {launch.finished.value} of {launch.total} blocks have ended" if launch.total > 1 else ""
    return error(
        "hang",
        f"{_threads(group)} in a loop for a change that never comes",
        launch.span_of(place),
        _wait(launch, stand, group, f" of {stand.name}"),
        others=others,
        notes=[f"no thread is left that could change memory, and no copy is under way{blocks}", *_exited(stand)],
        helps=["write what the loop looks for before the threads that could write it wait or exit"],
    )


def _explain_products(launch: Launch, stand: Stand, group: Group, groups: list[Group]) -> Diagnostic:
    first = group[0].warp // 4 * 4
    group = [thread for thread in group if thread.warp // 4 * 4 == first]
    closed = Record.at(state.Thread, stand.block.get("threads"))
    behind = [
        thread
        for thread in stand.threads
        if thread.warp // 4 * 4 == first and closed.get("product_group", thread.number) < group[0].waits_for
    ]
    return error(
        "hang",
        f"{_threads(group)} for products that never complete",
        launch.span_of(group[0].instruction),
        _wait(launch, stand, group, f" of {stand.name}"),
        others=_labels(launch, stand, [other for other in groups if other[0] not in group])[:3],
        notes=[
            f"all four warps of a warpgroup begin a product and close its group, and "
            f"{do(behind, stand.threads, 'has', 'have')} not",
            *_exited(stand),
        ][:2],
        helps=[f"let warps {first} to {first + 3} execute the same `wgmma` instructions"],
    )


def _explain_barrier(launch: Launch, stand: Stand, groups: list[Group]) -> Diagnostic:
    group = groups[0]
    number = group[0].barrier
    barrier = stand.barrier(number)
    arrived = barrier.get("arrived")
    expected = barrier.get("expected") or stand.block.get("live")
    others = _labels(launch, stand, groups[1:])
    return error(
        "hang",
        f"{_threads(group)} at barrier {number} for threads that never come",
        launch.span_of(group[0].instruction),
        _wait(launch, stand, group, f" of {stand.name}"),
        others=others[:3],
        notes=[f"{arrived} of {expected} threads have come to barrier {number}", *_exited(stand)],
        helps=["let all threads that the barrier counts come to it, or lower its count"] if not others else
              ["let all threads come to the same barrier"],
    )  # fmt: skip


def _exited(stand: Stand) -> list[str]:
    exited = [thread for thread in stand.threads if thread.status == state.DONE]
    return [do(exited, stand.threads, "has exited", "have exited")] if exited else []


def _labels(launch: Launch, stand: Stand, groups: Sequence[Group]) -> list[Label]:
    """What other threads wait for, on their lines."""
    found = []
    for group in groups[:2]:
        span = launch.span_of(group[0].instruction)
        if span is not None:
            found.append(Label(span, _wait(launch, stand, group)))
    return found


def _groups(threads: Sequence[Standing]) -> list[Group]:
    """Threads that wait for the same thing at the same place, the largest group first."""
    found: dict[object, Group] = {}
    for thread in threads:
        extra = (
            thread.members if thread.status == state.MEETING else thread.waits_at * (thread.status == state.AT_PHASE)
        )
        found.setdefault((thread.status, thread.instruction, extra), []).append(thread)
    return sorted(found.values(), key=lambda group: -len(group))


def _wait(launch: Launch, stand: Stand, group: Group, of: str = "", phase: str = "") -> str:
    """`lanes 0 to 15 of warp 0 wait here for lanes 0 to 31`"""
    first = group[0]
    looks = first.status == SPINS
    one, several = ("looks here again and again", "look here again and again") if looks else ("waits here", "wait here")
    text = do(group, stand.threads, f"{of} {one}", f"{of} {several}").replace("  ", " ")
    match first.status:
        case state.MEETING:
            return f"{text} for lanes {ranges(lane for lane in range(32) if first.members >> lane & 1)}"
        case state.AT_CLUSTER:
            return f"{text} at the barrier of the cluster"
        case state.AT_BARRIER:
            return f"{text} at barrier {first.barrier}"
        case state.AT_PHASE:
            return f"{text} for {phase}{_mbarrier(launch, first.waits_at)}"
    return f"{text}{_places(launch, group)}" if looks else text


def _places(launch: Launch, group: Group) -> str:
    """`, at bytes 0..4 of argument 0 and 3 other places`: what threads look at, if that is known of all of them."""
    addresses = sorted({thread.waits_at for thread in group})
    if not addresses[0]:
        return ""
    space, address = state.GLOBAL_SPACE, addresses[0]
    if address >= state.SHARED_WINDOW:
        space, address = state.SHARED_SPACE, address - state.SHARED_WINDOW
    more = len(addresses) - 1
    others = f" and {more} other place{'s' * (more > 1)}" if more else ""
    return f", at {name_bytes(launch, space, address, _size(launch, group[0].instruction))}{others}"


def _size(launch: Launch, number: int) -> int:
    """The bytes that an instruction loads."""
    sizes: list[int] = [size for access, _, _, size, _ in launch.compiled.facts["traffic"] if access == number]
    return sizes[0]


def _is_together(launch: Launch, thread: Standing) -> bool:
    """Whether a thread waits at an instruction that its whole warp, or lanes of it, execute together."""
    if thread.status in (state.AT_BARRIER, state.AT_CLUSTER):
        opcode = _instruction(launch, thread).opcode
        return opcode.mnemonic == "bar" or "aligned" in opcode.modifiers
    return thread.status == state.MEETING


def _threads(group: Group) -> str:
    return "a thread waits" if len(group) == 1 else f"{len(group)} threads wait"


def _instruction(launch: Launch, thread: Standing) -> ir.Instruction:
    return launch.compiled.places[thread.instruction][1]
