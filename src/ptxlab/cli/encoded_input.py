"""Numbers and tensor maps as the command line has them: hexadecimal digits, or a file."""

from __future__ import annotations

import re
from pathlib import Path

import click

MAP_BYTES = 128
MAP_DIGITS = 2 * MAP_BYTES
DIGITS = {"instruction": 8, "descriptor": 16}


def is_encoded(subject: str) -> bool:
    """Whether a subject is a number, or hexadecimal digits of a tensor map, and not the name of something."""
    return subject[:1].isdigit() or len(_digits(subject) or "") == MAP_DIGITS


def read_encoded(subject: str, form: str | None) -> int | bytes:
    """The number, or the bytes of a tensor map; a usage error where it is neither."""
    if not is_encoded(subject) and Path(subject).is_file():
        return _read_file(Path(subject))
    digits = _digits(subject)
    if digits is None and subject.isdecimal():
        return _fitting(int(subject), form, subject)
    if digits is None:
        raise click.UsageError(f"`{shorten(subject)}` is not a number, such as 0x4000404000010040, and not a file")
    if form == "tensor-map" or len(digits) > DIGITS["descriptor"]:
        if len(digits) != MAP_DIGITS:
            raise click.UsageError(
                f"`{shorten(subject)}` has {len(digits)} hexadecimal digits: an instruction descriptor has up to "
                f"{DIGITS['instruction']}, a matrix descriptor up to {DIGITS['descriptor']}, a tensor map {MAP_DIGITS}"
            )
        return bytes.fromhex(digits)
    return _fitting(int(digits, 16), form, subject)


def _fitting(number: int, form: str | None, subject: str) -> int:
    most = DIGITS[form or "descriptor"] * 4 if form != "tensor-map" else 0
    if number >> most:
        raise click.UsageError(f"`{shorten(subject)}` does not fit: {_needs(form)}")
    return number


def _needs(form: str | None) -> str:
    if form == "tensor-map":
        return f"a tensor map has {MAP_DIGITS} hexadecimal digits, the bytes in the order of memory"
    name = "an instruction descriptor" if form == "instruction" else "a matrix descriptor"
    return f"{name} has {DIGITS[form or 'descriptor'] * 4} bits"


def _digits(text: str) -> str | None:
    """Hexadecimal digits, with or without `0x`; underscores may be between them."""
    plain = text.replace("_", "")
    if found := re.fullmatch(r"0[xX]([0-9a-fA-F]+)", plain):
        return found[1]
    return plain if len(plain) == MAP_DIGITS and re.fullmatch("[0-9a-fA-F]+", plain) else None


def _read_file(path: Path) -> bytes:
    """The bytes of a tensor map: as they are, or as text of bytes or little-endian words in hexadecimal digits."""
    data = path.read_bytes()
    if len(data) == MAP_BYTES:
        return data
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise click.UsageError(f"`{path}` has {len(data)} bytes: a tensor map has {MAP_BYTES}") from None
    words = [word.removeprefix("0x") for word in re.split(r"[\s,;{}\[\]()]+", text) if word]
    is_hexadecimal = all(re.fullmatch("[0-9a-fA-F]+", word) for word in words)
    if not is_hexadecimal or sum(map(len, words)) != MAP_DIGITS or len({len(word) for word in words}) != 1:
        digits = f"{MAP_DIGITS} hexadecimal digits in bytes or words"
        raise click.UsageError(f"`{path}` is not a tensor map: {MAP_BYTES} bytes, or as text {digits}")
    if len(words) == 1:
        return bytes.fromhex(words[0])
    return b"".join(bytes.fromhex(word)[::-1] for word in words)


def shorten(text: str) -> str:
    """A long word with its middle left out."""
    return text if len(text) <= 40 else f"{text[:24]}…{text[-8:]}"
