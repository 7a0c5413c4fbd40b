"""Hangs of launches that run together: what each rank waits for, what it reads there, and which rank wrote it last."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import clocks, state
from ptxlab.emulate.abi.address_spaces import SHARED_WINDOW
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.hangs import describe_wait, explain_hang
from ptxlab.emulate.explain.snapshots import SPINS, BlockSnapshot, thread_name
from ptxlab.emulate.explain.waits import Group, Waits
from ptxlab.emulate.runtime.order import shadow
from ptxlab.native import offset_of, size_of
from ptxlab.report import Diagnostic, Label

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch
    from ptxlab.emulate.host.worker import HostWorker

_MOST_RANKS = 8  # of which a note says what they wait for
_MOST_LABELS = 3


@dataclass(frozen=True)
class _Waiting:
    """A launch that waits: the largest group of its threads that polls, or else waits."""

    launch: RunningLaunch
    group: Group
    blocks: int

    @property
    def title(self) -> str:
        assert self.launch.place is not None
        return self.launch.place.title


def explain_team_hang(launch: RunningLaunch, snapshot: BlockSnapshot, leader: HostWorker) -> Diagnostic:
    """Why no thread of any launch can continue."""
    found = explain_hang(launch, snapshot)
    waiting = _waiting(launch, leader)
    if not any(one.group.status == SPINS for one in waiting):
        return replace(found, notes=(*found.notes, *_rest(launch.team, waiting)))
    first = next(one for one in waiting if one.group.status == SPINS)
    span = first.launch.shown_at(first.group.instruction)
    others = [one for one in waiting if one is not first and one.launch.shown_at(one.group.instruction) != span]
    labels = [] if span is None else [Label(span, _label(first))]
    for one in others[:_MOST_LABELS]:
        other = one.launch.shown_at(one.group.instruction)
        if other is not None and all(label.span != other for label in labels):
            labels.append(Label(other, _label(one)))
    titles = [one.title for one in waiting]
    message = f"{_listed(titles)} {'wait' if len(titles) > 1 else 'waits'} for a change that never comes"
    notes = [note for one in waiting[:_MOST_RANKS] for note in _reads(one)]
    return replace(found, message=message, labels=tuple(labels), notes=(*notes, *_rest(launch.team, waiting)))


def _label(waiting: _Waiting) -> str:
    return describe_wait(waiting.launch, waiting.group, f" of {waiting.group.snapshot.name}")


def _listed(titles: Sequence[str]) -> str:
    """`rank 0, rank 1 and rank 2`"""
    if len(titles) < 2:
        return "".join(titles)
    if len(titles) > _MOST_RANKS:
        return f"{len(titles)} launches"
    return f"{', '.join(titles[:-1])} and {titles[-1]}"


def _waiting(launch: RunningLaunch, leader: HostWorker) -> list[_Waiting]:
    """The launches that wait, in their order."""
    groups: dict[int, list[Group]] = {}
    for snapshot in _snapshots(launch, leader):
        mine = launch.of(snapshot.number)
        assert mine.place is not None
        groups.setdefault(mine.place.number, []).extend(Waits(mine, snapshot).groups)
    found = []
    for number, own in sorted(groups.items()):
        ranked = sorted(own, key=lambda group: (group.status != SPINS, not group.first.waits_at, -len(group.threads)))
        if ranked:
            found.append(_Waiting(launch.team[number], ranked[0], len({group.snapshot.number for group in own})))
    return found


def _snapshots(launch: RunningLaunch, leader: HostWorker) -> Iterator[BlockSnapshot]:
    """The blocks of all clusters that have started and not ended."""
    clusters = leader.record.part("clusters")
    table = clusters.get("residents")
    addresses = [ctypes.c_uint64.from_address(table + 8 * at).value for at in range(clusters.get("waiting"))]
    for address in dict.fromkeys([*addresses, leader.record.get("progress.broken")]):
        if address:
            count = StructArray.at(state.Cluster, address).get("count")
            blocks = address + offset_of(state.Cluster, "blocks")
            for rank in range(count):
                block = ctypes.c_uint64.from_address(blocks + 8 * rank).value
                yield BlockSnapshot(launch.of(StructArray.at(state.Block, block).get("number")), block)


def _reads(waiting: _Waiting) -> list[str]:
    """What a launch reads where it polls, and which thread wrote that last."""
    launch, group = waiting.launch, waiting.group
    address = group.first.waits_at
    region = launch.regions.at(address)
    if group.status != SPINS or not 0 < address < SHARED_WINDOW or region is None:
        return []
    offset = address - region.base
    sizes = [size for access, _, _, size, _ in launch.compiled.facts["traffic"] if access == group.instruction]
    if not sizes or offset + sizes[0] > region.size:
        return []
    value = int.from_bytes(ctypes.string_at(region.data + offset, min(sizes[0], 8)), "little")
    where = f"bytes {offset}..{offset + sizes[0]} of {region.name}"
    return [f"{waiting.title} reads {value} in {where}, {_writer(launch, address, group.instruction)}"]


def _writer(launch: RunningLaunch, address: int, beside: int) -> str:
    """`which rank 1 wrote last, in line 12`"""
    access = _last_write(launch, address)
    if access is None:
        return "which nothing has written since the launch" if launch.checks else "the last writer is not tracked"
    writer = launch.of(access.get("block"))
    assert writer.place is not None
    if not writer.place.is_kernel:
        return f"which {writer.place.title} wrote last"
    lanes = access.get("lanes")
    thread = (access.get("flags") >> shadow.WARP_SHIFT) * 32 + (lanes & -lanes).bit_length() - 1
    who = thread_name(writer, access.get("block"), thread)
    line = writer.name_line(access.get("instruction"), beside if writer.compiled is launch.compiled else 0)
    return f"which {who} wrote last, in {line}"


def _last_write(launch: RunningLaunch, address: int) -> StructArray | None:
    """The last write to a word, as the history has it."""
    pages = launch.workers[0].history.part("pages")
    number, slots = (address >> shadow.PAGE_SHIFT) + 1, pages.get("slots")
    for at in range(pages.get("capacity")):
        page = StructArray.at(clocks.Page, slots + at * size_of(clocks.Page))
        if page.get("number") == number:
            offset = address % shadow.PAGE
            index = offset >> page.get("shift")
            access = StructArray.at(clocks.Access, page.get("accesses") + index * size_of(clocks.Access))
            return access if access.get("epoch") else None
    return None


def _rest(team: Sequence[RunningLaunch], waiting: Sequence[_Waiting]) -> list[str]:
    """A note on launches that have ended, or not started."""
    ended, unstarted, crowded = [], [], []
    for launch in team:
        assert launch.place is not None
        if launch.finished.value == launch.total:
            ended.append(launch.place.title)
        elif all(one.launch is not launch for one in waiting):
            unstarted.append(launch.place.title)
        elif left := launch.clusters - launch.workers[0].record.get("clusters.first"):
            blocks, resident = left * launch.cluster_size, launch.place.resident
            held = f"the SMs of its GPU hold {resident:,} of them at a time" if launch.total > resident else ""
            crowded.append(f"{blocks:,} of {launch.total:,} blocks of {launch.place.title} have not started"
                           + (f": {held}" if held else ""))  # fmt: skip
    notes = [f"{_listed(ended)} {'have' if len(ended) > 1 else 'has'} ended"] if ended else []
    if unstarted:
        notes.append(f"{_listed(unstarted)} {'have' if len(unstarted) > 1 else 'has'} not started")
    return [*notes, *crowded[:_MOST_RANKS]]
