"""Conditions and masks of lanes that execute a kernel together.

A condition is what LLVM compares to: an `i1` for each lane. A mask says the same, and is what is kept: which lanes
execute, which wait, what a predicate holds. A processor that has registers for masks keeps conditions. Any other has
to make a vector of bytes of every condition that it keeps, and vectors of 32 bits again of that where it chooses
between numbers. Here a mask is a word for each lane, of ones or zeros, which such a processor compares to and computes
with as it does with numbers; LLVM would find out that an `i1` is enough, so it is not shown where words come from.
"""

from __future__ import annotations

from ptxlab.emulate.translate.lane_shapes import VARYING, Shape
from ptxlab.native.engine import has_mask_registers
from ptxlab.native.text import Builder

NONE = "zeroinitializer"


class MaskBuilder(Builder):
    """Text with vectors that have an element for each lane."""

    __slots__ = ("_words", "group", "has_words", "shapes")

    def __init__(self, group: int) -> None:
        super().__init__()
        self.group = group  # lanes
        self.shapes: dict[str, Shape] = {}  # of values that are not uniform, by their names
        self.has_words = not has_mask_registers()
        self._words: set[str] = set()  # masks that are words

    def wide(self, type: str) -> str:
        """The vector of a type, an element for each lane; that of `i1` is a mask."""
        return f"<{self.group} x {'i32' if type == 'i1' and self.has_words else type}>"

    def elements(self, type: str) -> str:
        """The same, but that of `i1` is a condition."""
        return f"<{self.group} x {type}>"

    @property
    def conditions(self) -> str:
        """The type of a condition."""
        return self.elements("i1")

    def plain(self, operation: str) -> str:
        """A value by an instruction that is written as it is, not widened."""
        return Builder.value(self, operation)

    def vector(self, operation: str) -> str:
        """The same, where the result has an element for each lane."""
        name = self.plain(operation)
        self.shapes[name] = VARYING
        return name

    def splat(self, type: str, text: str) -> str:
        """A vector of which all elements are the same."""
        if type == "i1" and self.has_words:
            if text in ("true", "false"):
                return self.all_lanes if text == "true" else NONE
            return self._word(self.splat("i32", self.plain(f"sext i1 {text} to i32")))
        if text[0] != "%":
            return f"splat ({type} {text})"
        one = self.plain(f"insertelement {self.wide(type)} poison, {type} {text}, i64 0")
        return self.vector(
            f"shufflevector {self.wide(type)} {one}, {self.wide(type)} poison, <{self.group} x i32> zeroinitializer"
        )

    # Masks.

    @property
    def all_lanes(self) -> str:
        """The mask of all lanes."""
        return "splat (i32 -1)" if self.has_words else "splat (i1 true)"

    def mask(self, condition: str) -> str:
        """The mask of the lanes in which a condition holds."""
        if not self.has_words or condition in self._words or condition[0] != "%":
            return condition
        numbers = f"<{self.group} x float>"
        words = self.plain(f"sext {self.conditions} {condition} to {self.wide('i1')}")
        words = self.plain(f"bitcast {self.wide('i1')} {words} to {numbers}")
        hidden = self.plain(f"call {numbers} @llvm.arithmetic.fence.v{self.group}f32({numbers} {words})")
        return self._word(self.vector(f"bitcast {numbers} {hidden} to {self.wide('i1')}"))

    def loaded_mask(self, variable: str) -> str:
        """The mask that a variable holds."""
        return self._word(self.vector(f"load {self.wide('i1')}, ptr {variable}"))

    def condition(self, mask: str) -> str:
        """The condition that holds in the lanes of a mask."""
        if mask not in self._words:
            return mask if mask[0] == "%" or not self.has_words else f"splat (i1 {str(mask != NONE).lower()})"
        return self.vector(f"icmp slt {self.wide('i1')} {mask}, {NONE}")

    def combined(self, operation: str, first: str, second: str) -> str:
        """The `and`, `or` or `xor` of masks or conditions, as a mask."""
        masks = self.mask(first), self.mask(second)
        return self._word(self.vector(f"{operation} {self.wide('i1')} {masks[0]}, {masks[1]}"))

    def inverse(self, mask: str) -> str:
        """The lanes that are not in a mask."""
        return self.combined("xor", mask, self.all_lanes)

    def choose(self, mask: str, type: str, yes: str, no: str) -> str:
        """A vector: `yes` in the lanes of a mask, or in which a condition holds, else `no`."""
        if type == "i1" and self.has_words:
            return self._word(self._merged("i32", self.mask(mask), self.mask(yes), self.mask(no)))
        if mask not in self._words or type not in ("i32", "float"):
            all = self.wide(type)
            return self.vector(f"select {self.conditions} {self.condition(mask)}, {all} {yes}, {all} {no}")
        if type == "i32":
            return self._merged(type, mask, yes, no)
        bits = [self.plain(f"bitcast {self.wide(type)} {x} to {self.wide('i32')}") for x in (yes, no)]
        return self.vector(f"bitcast {self.wide('i32')} {self._merged('i32', mask, *bits)} to {self.wide(type)}")

    def _merged(self, type: str, mask: str, yes: str, no: str) -> str:
        """The bits of `yes` where those of a mask are set, else those of `no`."""
        first = self.vector(f"and {self.wide(type)} {mask}, {yes}")
        if no == NONE:
            return first
        others = self.plain(f"xor {self.wide(type)} {mask}, splat ({type} -1)")
        second = self.plain(f"and {self.wide(type)} {others}, {no}")
        return self.vector(f"or {self.wide(type)} {first}, {second}")

    def number_of(self, mask: str) -> str:
        """How many lanes a mask has, as an `i64`."""
        if mask in self._words:
            all = self.wide("i1")
            total = self.plain(f"call i32 @llvm.vector.reduce.add.v{self.group}i32({all} {mask})")
            return self.plain(f"zext i32 {self.plain(f'sub i32 0, {total}')} to i64")
        bits = f"i{self.group}"
        count = self.plain(f"call {bits} @llvm.ctpop.{bits}({bits} {self._bits(mask)})")
        return self.plain(f"zext {bits} {count} to i64")

    def bits(self, mask: str) -> str:
        """A mask as a number of 32 bits, the first lane being the lowest."""
        bits = self._bits(mask)
        return bits if self.group == 32 else self.plain(f"zext i{self.group} {bits} to i32")

    def _bits(self, mask: str) -> str:
        return self.plain(f"bitcast {self.conditions} {self.condition(mask)} to i{self.group}")

    def any(self, condition: str) -> str:
        """Whether a condition holds in some lane, or a mask has some."""
        if condition not in self.shapes:
            return condition
        if condition in self._words:
            return self.plain(f"icmp ne i64 {self.number_of(condition)}, 0")
        return self.plain(f"call i1 @llvm.vector.reduce.or.v{self.group}i1({self.conditions} {condition})")

    def all(self, condition: str) -> str:
        """Whether a condition holds in all lanes."""
        return self.plain(f"call i1 @llvm.vector.reduce.and.v{self.group}i1({self.conditions} {condition})")

    def are_below(self, numbers: str, limit: str) -> str:
        """Whether the numbers of all lanes, of 32 bits without a sign, are below a limit."""
        all = self.wide("i32")
        if not self.has_words:
            return self.all(self.vector(f"icmp ult {all} {numbers}, {self.splat('i32', limit)}"))
        largest = self.plain(f"call i32 @llvm.vector.reduce.umax.v{self.group}i32({all} {numbers})")
        return self.plain(f"icmp ult i32 {largest}, {limit}")

    def _word(self, name: str) -> str:
        if self.has_words and name[0] == "%":
            self._words.add(name)
        return name
