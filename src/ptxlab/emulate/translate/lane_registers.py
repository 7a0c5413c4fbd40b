"""The registers of lanes that execute a kernel together: scalars where lanes have the same value, else vectors.

What a register can hold is found by translating: a register that is given something else than it was thought to hold
becomes a vector, and the function is translated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.translate.lane_shapes import VARYING, Held, Indexed, Strided, Varying
from ptxlab.emulate.translate.registers import Registers, variable
from ptxlab.emulate.translate.values import LlvmValue, bits_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction

Key = tuple[int, int]  # the number of a register, and of its element


class LaneRegisters(Registers):
    """The registers of a function while that is translated for lanes."""

    def __init__(self, function: LaneFunction, shapes: dict[Key, Held | None]) -> None:
        single = function.single.registers  # with the shadows that threads have, which are zero here
        self._lanes = self._function = function
        self.by_index, self._sums = single.by_index, single._sums
        self._labels = 0
        self._shapes = shapes  # of what is written to them, as far as is known; None: uniform
        self._names: dict[Key, tuple[str, str | None]] = {}  # their values here, also as a `float`
        self._changed: set[Key] | None = None  # since a guard holds
        self._of_lanes: list[tuple[ir.Register, int, str]] = []  # buffers for what lanes find one by one
        self._before: dict[Key, tuple[str, str | None]] = {}  # their values before a side of a branch
        self._written: dict[Key, ir.Register] | None = None  # by the side that is being translated
        self.has_changed = False  # whether something else was found out than the text before relies on
        for register in self.by_index.values():
            for element in range(register.vector):
                self._declare(register, element)

    def _declare(self, register: ir.Register, element: int) -> None:
        """Have the builder know what the variable of a register holds."""
        shape = self._shapes.get((register.index, element))
        held, variables = variable(register, element), self._lanes.builder.variables
        if shape is not None:
            variables[held] = shape
            if register.index in self._sums:
                variables[f"{held}.raw"] = VARYING

    def declarations(self) -> Iterator[str]:
        """The variables, which are zero at the start: lanes that take no part compute with them, too."""
        for register in self.by_index.values():
            for element in range(register.vector):
                held, type = variable(register, element), bits_of(register.type)
                shape = self._shapes.get((register.index, element))
                yield from _zeroed(held, self._lanes.wide(type) if isinstance(shape, Varying) else type)
                if isinstance(shape, Strided) and shape.extension is not None:
                    yield from _zeroed(f"{held}.start", "i32")
        for index in sorted(self._sums):
            is_scalar = self._shapes.get((index, 0)) is None
            yield from _zeroed(f"%r{index}.raw", "float" if is_scalar else self._lanes.wide("float"))

    def get(self, register: ir.Register, element: int = 0) -> LlvmValue:
        key, builder = (register.index, element), self._lanes.builder
        held = variable(register, element)
        if builder.is_alone:
            return LlvmValue(self._lanes, register.type, builder.own(bits_of(register.type), held))
        if key not in self._names:
            text = builder.value(f"load {bits_of(register.type)}, ptr {held}")
            raw = f"{held}.raw" if register.index in self._sums else None
            if self._labels != builder.labels:
                return LlvmValue(self._lanes, register.type, text, raw)
            self._remember_name(key, text, raw)
        return LlvmValue(self._lanes, register.type, *self._names[key])

    def put(
        self, register: ir.Register, text: str, element: int = 0, raw: str | None = None, undefined: str = "0"
    ) -> None:
        lanes, builder, key = self._lanes, self._lanes.builder, (register.index, element)
        if builder.is_alone:
            self._of_lanes.append((register, element, builder.buffer(bits_of(register.type))))
            builder.put_element(bits_of(register.type), self._of_lanes[-1][2], text)
            return
        if self._written is not None:
            self._put_of_side(register, element, text, raw)
            return
        mask = lanes.kept_by(register.index)  # of lanes that are written, while others keep their value
        found = VARYING if mask is not None else builder.shapes.get(text)
        if isinstance(found, Indexed) or (register.index in self._sums and isinstance(found, Strided)):
            found = VARYING
        shape = self._join(key, found)
        self._declare(register, element)
        held, type = variable(register, element), bits_of(register.type)
        if raw is not None and raw[:2] == "%r":
            raw = builder.value(f"load float, ptr {raw}")
        if register.index in self._sums and raw is None:
            raw = builder.value(f"bitcast i32 {text} to float")
        exact = text, raw if register.type.width == 32 else None
        if isinstance(shape, Varying):
            text = self._blended(mask, type, text, held)
            if raw is not None and register.index in self._sums:
                raw = self._blended(mask, "float", raw, f"{held}.raw")
            type, float = self._lanes.wide(type), self._lanes.wide("float")
        else:
            float = "float"
            if isinstance(shape, Strided) and shape.extension is not None:
                own = builder.shapes.get(text)
                if isinstance(own, Strided) and own.extension is not None:
                    builder.lines.append(f"  store i32 {own.extension.start}, ptr {held}.start")
        builder.lines.append(f"  store {type} {text}, ptr {held}")
        if register.index in self._sums:
            builder.lines.append(f"  store {float} {raw}, ptr {held}.raw")
        # What it is here is known better than what its variable can hold.
        self._remember_name(key, *(exact if mask is None else (text, None)))

    def begin_side(self) -> None:
        """What is put from here on is known, but not kept: all lanes compute it, and not all take this side."""
        self._before, self._written = dict(self._names), {}

    def end_side(self) -> dict[Key, tuple[ir.Register, LlvmValue]]:
        """What the side found."""
        found = {key: (register, self.get(register, key[1])) for key, register in (self._written or {}).items()}
        self._names, self._written = self._before, None
        return found

    def choose(
        self,
        mask: str,
        yes: dict[Key, tuple[ir.Register, LlvmValue]],
        no: dict[Key, tuple[ir.Register, LlvmValue]],
        live: int,
    ) -> None:
        """Have registers hold what one side of a branch found in the lanes of a mask, and the other in other lanes."""
        builder = self._lanes.builder
        for key, (register, _) in (yes | no).items():
            if not live >> register.index & 1:
                continue
            values = [found[key][1] if key in found else self.get(register, key[1]) for found in (yes, no)]
            type = bits_of(register.type)
            text = builder.choose(mask, type, *(builder.widened(type, value.text) for value in values))
            raw = None
            if register.index in self._sums:
                raw = builder.choose(mask, "float", *(builder.widened("float", value.raw) for value in values))
            self.put(register, text, key[1], raw)

    def _put_of_side(self, register: ir.Register, element: int, text: str, raw: str | None) -> None:
        builder, type, mask = self._lanes.builder, bits_of(register.type), self._lanes.guard
        assert self._written is not None
        if raw is not None and raw[:2] == "%r":
            raw = builder.value(f"load float, ptr {raw}")
        if mask is not None:
            old = self.get(register, element)
            if register.index in self._sums:
                own = raw if raw is not None else builder.value(f"bitcast i32 {text} to float")
                raw = builder.choose(mask, "float", builder.widened("float", own), builder.widened("float", old.raw))
            else:
                raw = None
            text = builder.choose(mask, type, builder.widened(type, text), builder.widened(type, old.text))
        self._written[register.index, element] = register
        self._names[register.index, element] = text, raw if register.type.width == 32 else None

    def put_from_lanes(self) -> None:
        """Have registers hold what lanes found one by one."""
        for register, element, buffer in self._of_lanes:
            self.put(register, self._lanes.builder.unbuffered(bits_of(register.type), buffer), element)
        self._of_lanes.clear()

    def _blended(self, mask: str | None, type: str, text: str, held: str) -> str:
        builder = self._lanes.builder
        text = builder.widened(type, text)
        if mask is None:
            return text
        return builder.choose(mask, type, text, builder.widened(type, builder.value(f"load {type}, ptr {held}")))

    def keep_raw(self, register: ir.Register, text: str, type: str) -> None:
        """Keep what a register holds also as a `float`, if arithmetic wants that."""
        if register.index in self._sums:
            float = "float" if type == "i32" else self._lanes.wide("float")
            raw = self._lanes.builder.plain(f"bitcast {type} {text} to {float}")
            self._lanes.builder.lines.append(f"  store {float} {raw}, ptr %r{register.index}.raw")

    def _join(self, key: Key, shape: Held | None) -> Held | None:
        """What a register holds that is also given this."""
        if key not in self._shapes:
            self._shapes[key] = shape
            self.has_changed = True
            return shape
        known = self._shapes[key]
        same = known is shape or (
            isinstance(known, Strided) and isinstance(shape, Strided) and known.kind == shape.kind
        )
        if not same and not isinstance(known, Varying):
            self._shapes[key] = VARYING
            self.has_changed = True
        return self._shapes[key]

    def _remember_name(self, key: Key, text: str, raw: str | None) -> None:
        self._names[key] = text, raw
        if self._changed is not None:
            self._changed.add(key)

    def begin_guarded(self) -> None:
        self._changed = set()
        self.begin_instruction()

    def end_guarded(self) -> None:
        for key in self._changed or ():
            self._names.pop(key, None)
        self._changed = None

    def forget(self) -> None:
        self._names.clear()

    def drop(self, live: int) -> None:
        """Nothing: LLVM finds out what is not read."""


def _zeroed(name: str, type: str) -> tuple[str, str]:
    return f"  {name} = alloca {type}", f"  store {type} zeroinitializer, ptr {name}"
