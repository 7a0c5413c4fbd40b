"""Launches that lack nothing but addresses: what makes a call of a kernel's function cheap.

The first call with some extents, strides and types compiles the kernel, encodes its tensor maps and packs its
parameters. What changes from call to call is a few addresses among them; each stream has memory of its own to count in.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ptxlab.gpu.driver import current
from ptxlab.gpu.prepared import Prepared
from ptxlab.measure import Launch

_ADDRESS = struct.Struct("<Q").pack_into


class _OnStream(NamedTuple):
    prepared: Prepared
    template: bytes
    offsets: list[int]
    memory: Any


class Ready:
    """A launch on a GPU whose parameters number `changing` are addresses, or tensor maps, that each call gives.

    `bytes` is how much memory each of these arrays covers, `written` which of them is the result. `memory(stream)`
    returns what a stream needs besides: addresses by the number of their parameter, and their owner.
    """

    def __init__(
        self,
        launch: Launch,
        gpu: int,
        changing: Sequence[int],
        bytes: Sequence[int],
        written: int,
        memory: Callable[[int], tuple[dict[int, int], Any]],
    ) -> None:
        self.launch, self.gpu, self.changing, self.memory = launch, gpu, changing, memory
        self.bytes, self.written = bytes, written
        self.on_stream: dict[int, _OnStream] = {}

    def overlaps(self, addresses: Sequence[int]) -> bool:
        """Whether the result would be written over what is read."""
        start = addresses[self.written]
        end = start + self.bytes[self.written]
        return any(
            number != self.written and address < end and start < address + bytes
            for number, (address, bytes) in enumerate(zip(addresses, self.bytes, strict=True))
        )

    def start(self, addresses: Sequence[int], stream: int) -> None:
        """Start it on a stream, and do not wait."""
        found = self.on_stream.get(stream)
        if found is None:
            found = self._prepare(stream)
        data = bytearray(found.template)
        for offset, address in zip(found.offsets, addresses, strict=True):
            _ADDRESS(data, offset, address)  # a tensor map begins with its address
        found.prepared.start(data)

    def _prepare(self, stream: int) -> _OnStream:
        with current(self.gpu):
            prepared = self.launch.prepare(stream)
        offsets = [offset for offset, _ in prepared.signature.slots]
        template = bytearray(prepared.parameters)
        addresses, owner = self.memory(stream)
        for number, address in addresses.items():
            _ADDRESS(template, offsets[number], address)
        found = _OnStream(prepared, bytes(template), [offsets[number] for number in self.changing], owner)
        self.on_stream[stream] = found
        return found
