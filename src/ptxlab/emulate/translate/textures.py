"""Textures and surfaces in the code of a kernel: lookups and queries go to the runtime, surfaces are global memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.textures import SurfaceAccess, TextureLookup
from ptxlab.emulate.translate.records import OperationRecord, read_field
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.isa.types import type_named
from ptxlab.isa.units.texture_unit import Lookup, SurfaceTexel

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine

_ACCESSES = {"load": address_spaces.LOAD, "store": address_spaces.STORE, "update": address_spaces.ATOMIC}


class TextureUnit:
    """`k.textures`, see `isa.units.texture_unit`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def handle(self, operand: LlvmAddress) -> LlvmValue:
        if operand.space == "param":  # of a parameter that is a `.texref`, what it holds
            return self._machine.load(operand, "u64")[0]
        return operand.value

    def look_up(self, lookup: Lookup[LlvmValue]) -> None:
        record = OperationRecord(
            TextureLookup,
            texture=lookup.texture,
            sampler=0 if lookup.sampler is None else lookup.sampler,
            operation=lookup.operation,
            geometry=lookup.geometry,
            component=lookup.component,
            result=lookup.result,
            is_integer=int(lookup.is_integer),
            layer=lookup.layer,
            has_depth=int(lookup.depth is not None),
            depth=0 if lookup.depth is None else lookup.depth,
            level=lookup.level,
            coordinates=lookup.coordinates,
            gradients=_spread(lookup.gradients),
            offsets=lookup.offsets,
        )
        self._machine.runtime("look_up_texture", record, self._machine.number)
        self._machine.check()

    def found(self, component: int) -> LlvmValue:
        return read_field(self._machine.function, TextureLookup, "found", component)

    def query(self, handle: LlvmValue, query: int, level: LlvmValue | int) -> LlvmValue:
        machine = self._machine
        found = machine.ask_runtime("query_texture", handle, query, level, machine.number, result="u32")
        machine.check()
        return found

    def is_kind(self, handle: LlvmValue, kind: int) -> LlvmValue:
        return self._machine.ask_runtime("is_handle_of", handle, kind, result="u32") != 0

    def locate(self, operand: LlvmAddress, where: SurfaceTexel[LlvmValue]) -> LlvmAddress:
        machine = self._machine
        record = OperationRecord(
            SurfaceAccess,
            surface=self.handle(operand),
            geometry=where.geometry,
            mode=where.boundary,
            bytes=where.bytes,
            unit=where.unit,
            access=_ACCESSES[where.access],
            layer=where.layer,
            coordinates=where.coordinates,
        )
        name = machine.function.unit.calls.runtime_call(
            machine.function, "locate_in_surface", (record, machine.number), "u64"
        )
        assert name is not None
        machine.check()
        return LlvmAddress("global", name)

    def is_signed(self, handle: LlvmValue) -> LlvmValue:
        return self._machine.ask_runtime("has_signed_texels", handle, result="u32") != 0

    def texel_bytes(self, handle: LlvmValue) -> LlvmValue:
        return self._machine.ask_runtime("texel_bytes", handle, result="u32")

    def texel_word(self, handle: LlvmValue, values: Sequence[LlvmValue], word: int) -> LlvmValue:
        given: list[LlvmValue | int] = [LlvmValue(value.function, type_named("u32"), value.text) for value in values]
        given += [0] * (4 - len(given))
        return self._machine.ask_runtime("texel_word", handle, *given, word, result="u32")


def _spread(gradients: Sequence[LlvmValue]) -> list[LlvmValue | int]:
    """Both gradients, three words each."""
    half = len(gradients) // 2
    padding = [0] * (3 - half)
    return [*gradients[:half], *padding, *gradients[half:], *padding]
