"""The types of PTX: what a register, a variable or an instruction's type modifier can be.

`type_named("f32")` is the one way to get a `Type`; every name has one shared object, so types compare by identity.
"""

from dataclasses import field

from ptxlab.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A PTX type: `kind` is b(its), u(nsigned), s(igned), f(loat) or p(redicate); packed types have several lanes."""

    name: str
    kind: str
    bits: int
    lanes: int = 1
    declarable: bool = False
    width: int = field(init=False)
    """Bits a value of this type occupies in a register."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", self.bits * self.lanes)

    def __repr__(self) -> str:
        return f".{self.name}"


def _build() -> dict[str, Type]:
    types = [Type("pred", "p", 1, declarable=True)]
    types += [Type(f"b{bits}", "b", bits, declarable=True) for bits in (8, 16, 32, 64, 128)]
    types += [Type(f"{kind}{bits}", kind, bits, declarable=True) for kind in "us" for bits in (8, 16, 32, 64)]
    types += [Type(f"f{bits}", "f", bits, declarable=True) for bits in (16, 32, 64)]
    types += [Type("f16x2", "f", 16, 2, declarable=True), Type("f32x2", "f", 32, 2)]
    types += [Type("bf16", "f", 16), Type("bf16x2", "f", 16, 2), Type("tf32", "f", 32)]
    types += [Type("u16x2", "u", 16, 2), Type("s16x2", "s", 16, 2), Type("u8x4", "u", 8, 4), Type("s8x4", "s", 8, 4)]
    types += [Type(name, "f", 8) for name in ("e4m3", "e5m2", "ue8m0", "ue4m3", "ue5m3", "e2m3", "e3m2", "e2m1")]
    types += [Type(f"{name}x2", "f", 8, 2) for name in ("e4m3", "e5m2", "ue8m0", "ue5m3", "e2m3", "e3m2")]
    types += [Type(f"{name}x4", "f", 8, 4) for name in ("e4m3", "e5m2", "ue8m0", "e2m3", "e3m2", "e2m1p4")]
    types += [Type("e2m1x2", "f", 4, 2), Type("e2m1x4", "f", 4, 4), Type("s2f6x2", "f", 8, 2)]
    types += [
        Type("b1", "b", 1),
        Type("b2", "b", 2),
        Type("b4", "b", 4),
        Type("u4", "u", 4),
        Type("s4", "s", 4),
        Type("u2", "u", 2),
        Type("s2", "s", 2),
    ]
    types += [Type(name, "o", 64, declarable=True) for name in ("texref", "samplerref", "surfref")]
    return {type.name: type for type in types}


TYPES = _build()


def type_named(name: str) -> Type:
    """The type a modifier such as `f32` names (without its dot)."""
    return TYPES[name]
