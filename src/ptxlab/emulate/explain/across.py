"""Races between launches that run at the same time, on several GPUs or on several streams of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.explain.accesses import Race
from ptxlab.emulate.explain.found import Party, replay
from ptxlab.emulate.explain.grids import missing_wait
from ptxlab.emulate.runtime.order import shadow
from ptxlab.isa.recorder import Access
from ptxlab.report import Diagnostic, Label, Span, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_MOST_LINES = 3
_SPANS = {"`cudaMallocAsync`": ("allocates", "allocated"), "`cudaFreeAsync`": ("frees", "freed")}  # run as fills


def is_across(race: Race) -> bool:
    """Whether the accesses of a race are of two launches."""
    return race.access.launch is not race.other.launch


def explain_across(races: Sequence[Race]) -> Iterator[Diagnostic]:
    """The races between launches, of each pair of lines one."""
    first: dict[tuple[object, ...], Race] = {}
    for race in races:
        places = [(party.launch.place, _span(party) or party.instruction, _hidden(party)) for party in race.parties]
        lines = frozenset((place.kind, *at) for place, *at in places if place is not None)
        first.setdefault((lines,), race)
    yield from map(_explain, first.values())


def _explain(race: Race) -> Diagnostic:
    earlier, later = race.parties
    there, here = _title(earlier), _title(later)
    if there in _SPANS or here in _SPANS:
        (name, does), (call, at_end) = sorted(
            ((there, _does(earlier)), (here, _does(later))), key=lambda one: one[0] in _SPANS
        )
        message = f"{name} {does} global memory that {call} {at_end}"
    elif earlier.kind == later.kind == address_spaces.STORE:
        message = f"{there} and {here} write the same global memory"
    elif later.kind == address_spaces.LOAD:
        message = f"{here} reads global memory that {there} {earlier.does}"
    else:
        message = f"{here} {later.does} global memory that {there} {earlier.does}"
    if later.flags & shadow.STALE and _is_overlap(race):
        message += ", through the non-coherent cache"
    span, other = _span(later), _span(earlier)
    text, before = f"{_who(later)} {_did(later)} {race.bytes}", f"{_who(earlier)} {_did(earlier)} them"
    others = [] if other is None else [Label(other, before)]
    if other == span:
        text, others = f"{before}, {text}", []
    hidden = dict.fromkeys(one for party in race.parties if (one := _hidden(party)) is not None)
    found = error(
        "data-race",
        f"unsynchronized: {message}",
        span,
        text,
        others=[*others, *_host_lines(race), *(Label(ptx) for ptx, _ in hidden)],
        notes=[_reason(race), *_narrow(race), *replay(race.launch), *(calls for _, calls in hidden)],
        helps=list(_helps(race)),
    )
    return replace(found, facts={"accesses": race.facts})


def _title(party: Party) -> str:
    assert party.launch.place is not None
    return party.launch.place.title


def _who(party: Party) -> str:
    place = party.launch.place
    return party.who if place is None or place.is_kernel else place.title


def _span(party: Party) -> Span | None:
    """The line of an access, or where the host starts a copy."""
    place = party.launch.place
    if place is not None and not place.is_kernel:
        return place.host_line
    return party.launch.shown_at(party.instruction)


def _hidden(party: Party) -> tuple[Span, str] | None:
    """The PTX of an access in code that is not the user's, and how the line that is shown calls it."""
    ptx = party.launch.span_of(party.instruction)
    if party.launch.place is None or not party.launch.place.is_kernel or ptx is None:
        return None
    origins = party.launch.origins
    calls = origins.calls(ptx)
    return None if calls is None or origins.is_shown_whole(ptx) else (ptx, calls)


def _does(party: Party) -> str:
    return _SPANS[_title(party)][0] if _title(party) in _SPANS else party.does


def _did(party: Party) -> str:
    if _title(party) in _SPANS:
        return _SPANS[_title(party)][1]
    if party.network is not None:
        return f"started {party.network} that {party.does}"
    return f"started an operation that {party.does}" if party.is_async else party.did


def _is_on_one_gpu(race: Race) -> bool:
    places = [party.launch.place for party in race.parties]
    return len({place.device for place in places if place is not None}) == 1


def _is_overlap(race: Race) -> bool:
    """Whether the later access is of a launch that may start while that of the earlier one still runs."""
    earlier, later = (party.launch.place for party in race.parties)
    return earlier is not None and later is not None and earlier.number in later.overlaps


def _host_lines(race: Race) -> list[Label]:
    """Where the host has launched both, if both are on one GPU, or not by one line."""
    places = [party.launch.place for party in race.parties]
    known = [place for place in places if place is not None and place.host_line is not None]
    if len({place.host_line for place in known}) < 2:
        return []
    return [
        Label(place.host_line, f"{place.title} is {place.order.verb} here")
        for place in known
        if place.is_kernel and place.host_line is not None
    ]


def _reason(race: Race) -> str:
    """Why the two accesses are not ordered."""
    earlier, later = race.parties
    for party in race.parties:
        if party.network is not None:
            return party.network.completion
    if earlier.flags & later.flags & shadow.STRONG:
        if (earlier.flags ^ later.flags) & shadow.SIZE:
            return "both are strong, but of different sizes: such accesses race as weak ones do"
        if not earlier.flags & later.flags & shadow.SYSTEM:
            return "both are strong, but the scope of one does not include the other GPU, as `.sys` does"
    if _is_overlap(race):
        return missing_wait(later, _title(later), _title(earlier))[0]
    if _is_on_one_gpu(race):
        assert later.launch.place is not None
        return later.launch.place.order.missing
    return "nothing orders the two: no release/acquire pair with scope `.sys`, and no event"


def _narrow(race: Race) -> list[str]:
    """A note on synchronization by the kernels that does not include other GPUs."""
    if _is_on_one_gpu(race):
        return []
    spelled: dict[str, None] = {}
    for party in race.parties:
        if party.launch.place is not None and not party.launch.place.is_kernel:
            continue
        for number in _narrow_instructions(party.launch):
            opcode = party.launch.compiled.instructions[number][1].opcode.text
            spelled[f"`{opcode}` in {party.launch.name_line(number, party.instruction)}"] = None
    if not spelled:
        return []
    names = list(spelled)[:_MOST_LINES]
    more = f" and {len(spelled) - len(names)} more" if len(spelled) > len(names) else ""
    verb = "have" if len(spelled) > 1 else "has"
    return [f"{', '.join(names)}{more} {verb} a scope that ends with the GPU: no order with another one"]


def _narrow_instructions(launch: RunningLaunch) -> Iterator[int]:
    """The strong accesses and fences of a kernel whose scope is narrower than `.sys` and wider than a block."""
    for number in range(len(launch.compiled.instructions)):
        effects = launch.compiled.effects(number)
        is_access = any(access.order.endswith((".gpu", ".cluster")) for access in effects.accesses)
        if is_access or any(fence.endswith(".gpu") for fence in effects.fences):
            yield number


def _helps(race: Race) -> Iterator[str]:
    """What orders the two: signals of kernels that synchronize by themselves, calls of the host for all others."""
    if any(party.network is not None for party in race.parties):
        yield "`nvshmem_fence()` after the put and before its signal, or a put with a signal; a wait before the access"
        return
    if _is_overlap(race):
        yield from missing_wait(race.parties[1], "", "")[1]
        return
    signalling = sum(_is_signalling(party.launch) for party in race.parties)
    is_near = _is_on_one_gpu(race)
    if signalling < 2 or is_near:
        places = [party.launch.place for party in race.parties if party.launch.place is not None]
        first, second = sorted(places, key=lambda place: place.number)
        yield second.order.between(first.host_line, second.host_line, is_near)
    if signalling == 2 or (signalling and not is_near):
        scope = "`.gpu`" if is_near else "`.sys`"
        yield f"release with {scope} after the write, and acquire with {scope} before the other access"


def _is_signalling(launch: RunningLaunch) -> bool:
    """Whether a kernel synchronizes with others while they run: it has a fence, or a strong access but for updates."""
    if launch.place is not None and not launch.place.is_kernel:
        return False
    effects = [launch.compiled.effects(number) for number in range(len(launch.compiled.instructions))]
    return any(
        any(fence.endswith((".gpu", ".sys")) for fence in one.fences)
        or any(_is_signal(access) for access in one.accesses)
        for one in effects
    )


def _is_signal(access: Access) -> bool:
    order, _, scope = access.order.rpartition(".")
    return scope in ("gpu", "sys") and (access.kind != "update" or order != "relaxed")
