"""When an access is complete before another one starts: by what is known there, and by what completes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from ptxlab.prove.execution.segments import Access
from ptxlab.prove.questions.copies import FREE, PHASED, pending
from ptxlab.prove.terms.terms import is_own_rank, leaves, without_rank

from .known import OWN, WARP, Before, Known, Place
from .orders import Orders
from .phases import loop_of

# What the asynchronous proxy does, by what completes it.
PROXY = ("mbarrier", "bulk", "bulk.read", "wgmma", "tensor work")


class Completion:
    """When accesses are complete before others."""

    def __init__(self, orders: Orders) -> None:
        self.orders, self.known = orders, orders.known
        self._pending: dict[tuple[object, ...], set[int]] = defaultdict(set)
        for one in pending(orders.execution.notes.segments):
            loop = loop_of(one.copy.segment.loops, orders.depth)
            self._pending[(*_identity(one.copy), one.segment)].add(0 if loop is None else one.since.get(loop, FREE))

    def before(self, one: Access, other: Access, *, same_thread: bool) -> list[Before]:
        """When the first of two accesses is known to be complete before the second starts, in whatever blocks."""
        if any(len(access.segment.loops) == self.orders.depth > 0 for access in (one, other)):
            return []
        firsts = self._of_first_group(one, other)
        if firsts is None:
            return []
        one, other = firsts
        start, target = self.orders.place(other), self.orders.place(one)
        start = replace(start, others=start.others | self.known.fixed(start, target))
        starts, targets = ([replace(place, mask=part) for part in self.orders.threads.by_rank(place.mask)]
                           for place in (start, target))  # fmt: skip
        ways = [self._before(one, other, start, target, same_thread) for start in starts for target in targets
                if self._meet(one, other, start.mask, target.mask, same_thread)]  # fmt: skip
        return [Before(max((each[is_all] for each in ways), default=0), is_all) for is_all in (False, True)
                if all(is_all in each for each in ways)]  # fmt: skip

    def _of_first_group(self, *accesses: Access) -> tuple[Access, Access] | None:
        """Two accesses, that of the first group for one of groups that take turns; None: nothing is known of them."""
        loops = [access.segment.loops[:1] for access in accesses]
        relays = [self.orders.relay_of.get(one[0]) if one else None for one in loops]
        if any(relays) and (all(relays) or () in loops):
            return None
        one, other = (access if relay is None else relay.accesses.get(access)
                      for access, relay in zip(accesses, relays, strict=True))  # fmt: skip
        return None if one is None or other is None else (one, other)

    def _meet(self, one: Access, other: Access, start: int, target: int, same_thread: bool) -> bool:
        """Whether two accesses, by threads of one block each, may be to the memory of one block."""
        if not start or not target:
            return True
        if same_thread and self.orders.threads.rank(start) != self.orders.threads.rank(target):
            return False
        ranks = [self._whose(access, mask) for access, mask in ((one, target), (other, start))]
        return None in ranks or ranks[0] == ranks[1]

    def _whose(self, access: Access, mask: int) -> int | None:
        """The rank of the block whose memory threads of one block access; None: it may be any."""
        _, rank = without_rank(access.address)
        if rank is None or not all(map(is_own_rank, leaves([rank]))):
            return None
        return self.orders.threads.evaluate(rank, mask.bit_length() - 1)

    def _before(self, one: Access, other: Access, start: Place, target: Place, same_thread: bool) -> dict[bool, int]:
        is_tensor = one.space == "tensor"
        needs_fence = not one.unit and one.writes and other.unit in PROXY and not is_tensor
        wanted = {one.space} - {"generic"} or {"shared", "global"} if needs_fence else set[str]()
        needs_order = is_tensor and bool(other.unit)
        found: dict[bool, int] = {}
        ways: list[tuple[Known | None, int]] = list(self.known.reached(start).items())
        ways.append((None, 0))
        for known, distance in ways:
            if known is None and (needs_fence or needs_order):
                continue
            if known is not None and (known.is_passed or not wanted <= known.fenced or known.is_ordered < needs_order):
                continue
            is_own = same_thread or (start.mask == target.mask and start.mask.bit_count() == 1)
            if not self._covers(known, target, one, is_own):
                continue
            for all, total in self._complete(start, known, distance, one, target):
                anchor = None if known is None else known.anchor
                if anchor is not None:
                    is_last = total <= 1 and target.loop is not None and self.orders.ends_with(target.loop, anchor)
                    if not all and not is_last:
                        continue
                    all, total = True, 0  # in all turns
                found[all] = min(found.get(all, total), total)
        return found

    def _covers(self, known: Known | None, target: Place, access: Access, same_thread: bool) -> bool:
        """Whether what is known is known of all threads that do an access."""
        if known is None or known.mask == OWN:
            return same_thread
        if known.mask == WARP:
            return False
        of_warps = access.unit in ("wgmma", "tensor loads")  # its lanes do it together
        return not target.mask & ~(self.orders.threads.warps(known.mask) if of_warps else known.mask)

    def _complete(
        self, start: Place, known: Known | None, distance: int, access: Access, target: Place
    ) -> Iterator[tuple[bool, int]]:
        here = start if known is None else self.orders.known_at(known.event)
        is_looped = here.loop is not None and (known is None or known.looped)
        is_commit = known is not None and known.event.covers is not None
        if self.orders.depth and None not in (here.loop, target.loop) and here.loop is not target.loop:
            return  # in one turn of the loop around both, not in all of its turns
        in_turn = here.loop is not None and here.loop in self.orders.relay_of
        if in_turn and target.loop is None:
            return  # another group may not have come to it
        if access.unit in PHASED and access.unit != "tensor work":
            is_its = known is not None and (known.event.kind == "copy" or is_commit)
            if is_its and known is not None and known.event.number == access.epoch:
                yield not is_looped or target.loop is None, distance
            return
        is_copy = known is not None and known.event.kind == "copy"  # its bytes, not what its thread did before
        if is_copy or (access.unit == "tensor work" and not is_commit):
            return
        if access.unit and access.unit != "tensor work":
            if known is None or known.event.covers is not None:
                return
            is_again = target.loop is here.loop and is_looped
            if access.epoch >= known.event.number and not is_again:
                return  # it is not started yet
            turns = self._pending[(*_identity(access), known.event.segment)]
            if known.event in self.orders.tails:
                turns = turns | self._pending[(*_identity(access), self.orders.tails[known.event].segment)]
            if FREE in turns:
                return
            more = max(turns, default=-1) + 1
            more = max(more, int(access.epoch >= known.event.number or here.is_after))
            if is_again and in_turn and more and known.event not in self.orders.tails:
                return  # in the first turn of a group, what was started before is of another one
            if is_again:
                yield False, distance + more
            elif not turns:
                yield True, distance
            return
        if target.loop is here.loop and is_looped:
            is_before = access.epoch < here.limit + 1 and known is not None and not here.is_after
            if in_turn and not is_before and not here.is_after:
                return
            yield False, distance + (0 if is_before else 1)
        elif access.epoch < here.limit + (0 if known is None else 1):
            yield True, distance


def _identity(access: Access) -> tuple[object, ...]:
    return access.at, access.segment, access.address, access.kind
