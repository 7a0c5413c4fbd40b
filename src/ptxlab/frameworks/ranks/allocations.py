"""Memory that torch's allocator gives to the next tensor of a stream, while another stream may still use it.

The allocator takes the memory of a tensor back for the stream that it was allocated on. A kernel on another stream, if
nothing orders it with that stream, then accesses memory of another tensor: `tensor.record_stream(stream)` says that the
stream uses it, or the first stream waits for it before the tensor goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy

from ptxlab.node import Stream as NodeStream
from ptxlab.node.streams import Box

if TYPE_CHECKING:
    from ptxlab.device.regions import Region
    from ptxlab.frameworks.ranks.session import Ranks
    from ptxlab.frameworks.ranks.streams import Stream


@dataclass
class _Allocation:
    """Memory of a tensor, and the streams that use it."""

    home: NodeStream
    """What it was allocated on."""
    others: set[NodeStream] = field(default_factory=set)
    """On which nothing says that they use it."""


class Allocations:
    """Whose memory may be given to other tensors."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._known: dict[int, _Allocation] = {}  # by address
        self._free: dict[NodeStream, list[Region]] = {}  # by the stream that they were allocated on

    def use(self, tensor: Any, stream: Stream) -> None:
        """A stream uses a tensor; the first that does is what it was allocated on."""
        known = self._known.setdefault(tensor.untyped_storage().data_ptr(), _Allocation(stream.own))
        if stream.own is not known.home:
            known.others.add(stream.own)

    def keep_for(self, tensor: Any, stream: Stream) -> None:
        """As `Tensor.record_stream`: the memory is given to others when the stream has done what it does now."""
        known = self._known.get(tensor.untyped_storage().data_ptr())
        if known is not None:
            known.others.discard(stream.own)

    def free(self, key: int, region: Region) -> None:
        """A tensor is gone."""
        known = self._known.pop(key, None)
        if known is not None and known.others:
            self._free.setdefault(known.home, []).append(region)

    def take(self, name: str) -> None:
        """An operator needs memory on the current stream, which may be that of tensors that are gone."""
        if self._ranks.history.is_needed:
            self._ranks.wait()  # what has not run keeps its tensors
        stream = self._ranks.current_stream().own
        rank = self._ranks.turns.device
        title = f"`{name}` on rank {rank}, in memory of a tensor that was freed without `record_stream`,"
        for region in self._free.pop(stream, ()):
            box = Box(region.base, (region.size, 1, 1), (0, 0))
            values = numpy.zeros(region.size, numpy.uint8)
            self._ranks.record(stream, lambda own, box=box, values=values: own.access(box, title, values))  # type: ignore[misc]
