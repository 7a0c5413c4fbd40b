"""What `mov` and `prmt` must give."""

from typing import Any

from ..cases import Case
from .table import oracle


@oracle("move", "mov")
def mov(case: Case) -> Any:
    a, to = case.bits["a"], case.operands["d"]
    if isinstance(a, tuple):
        if to.count:
            return (a,)
        whole = "".join(f"{part:0{case.type('a').width}b}" for part in reversed(a))
        return int(whole, 2)
    if to.count:
        width = case.type("a").width // to.count
        if width < 8:  # an H200 gives this; the manual has no vectors of a scalar
            return ((a, 0, 0, 0),)
        return (tuple(a >> width * index & (2**width - 1) for index in range(to.count)),)
    return a


# PTX ISA 9.7.9.7: the byte that goes to positions 3, 2, 1 and 0, for selectors 0 to 3.
PERMUTATIONS = {
    "f4e": "3210 4321 5432 6543",
    "b4e": "5670 6701 7012 0123",
    "rc8": "0000 1111 2222 3333",
    "ecl": "3210 3211 3222 3333",
    "ecr": "0000 1110 2210 3210",
    "rc16": "1010 3232 1010 3232",
}


@oracle("move", "prmt")
def prmt(case: Case) -> int:
    pool = b"".join(case.number(name).to_bytes(4, "little") for name in "ab")
    c = case.number("c")
    if case.m.mode:
        return int.from_bytes([pool[int(one)] for one in PERMUTATIONS[case.m.mode].split()[c % 4]], "big")
    chosen = [c >> 4 * position & 15 for position in range(4)]
    return int.from_bytes([(0xFF if pool[one - 8] > 127 else 0) if one > 7 else pool[one] for one in chosen], "little")
