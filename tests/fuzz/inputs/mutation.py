"""Changes of bytes, of JSON values and of text, by a random number generator."""

import copy
import random
from typing import Any

EDGES = [
    edge + step for bits in (0, 7, 8, 15, 16, 31, 32, 40, 56, 63, 64) for edge in (1 << bits,) for step in (-1, 0, 1)
]
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, -(1 << 63), 10**30, 0.5, float("nan"), float("inf"), -1e300, "", "x", "0", "-1", "\0",
    "\u2603", "../..", "/dev/zero", "%r1", "a" * 3000, [], {}, [[]], [None], {"": {}}, [0] * 3, [-1] * 3, [1 << 40] * 3,
]  # fmt: skip


def change_bytes(data: bytes, choose: random.Random) -> bytes:
    """One change of some bytes."""
    at = choose.randrange(len(data) + 1)
    size = choose.choice([1, 2, 4, 8, choose.randrange(64) + 1])
    match choose.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[at + size :]
        case 2:
            return data[:at] + choose.randbytes(size) + data[at:]
        case 3:
            return data[:at] + choose.choice(EDGES).to_bytes(9, "little")[:size] + data[at + min(size, 9) :]
        case 4 if data:
            at %= len(data)
            return data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + data[at + 1 :]
        case _:
            return data[:at] + data[max(at - size, 0) : at] + data[at:]


def change_text(text: str, choose: random.Random) -> str:
    """One change of a text: of characters, or of a number or a word in it."""
    words = text.split(" ")
    if choose.random() < 0.5 and len(words) > 1:
        at = choose.randrange(len(words))
        words[at] = choose.choice([str(choose.choice(EDGES)), choose.choice(words), "", "=", "[", "]", ",", "\u2603"])
        return " ".join(words)
    at = choose.randrange(len(text) + 1)
    new = choose.choice(["", "0", "-", "9" * 30, "=", ",", "[", "]", '"', "'", "\\", "\0", "\n", "\u2603", "e", "."])
    return text[:at] + new + text[at + choose.randrange(3) :]


def change_value(value: Any, choose: random.Random) -> Any:
    """A copy of a JSON value in which one value, anywhere inside, is another, missing or twice there."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return choose.choice(VALUES)
    holder, key = choose.choice(places)
    match choose.randrange(5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case 2:
            other, at = choose.choice(places)
            holder[key] = copy.deepcopy(other[at])
        case 3 if isinstance(holder[key], int):
            holder[key] = choose.choice([choose.choice(EDGES), holder[key] + 1, holder[key] - 1, -holder[key]])
        case 3 if isinstance(holder[key], str):
            holder[key] = change_text(holder[key], choose)
        case _:
            holder[key] = copy.deepcopy(choose.choice(VALUES))
    return value


def _places(value: Any) -> Any:
    """Every list or dictionary inside, with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
