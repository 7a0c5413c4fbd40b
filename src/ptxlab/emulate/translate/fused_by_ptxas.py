"""Which products and sums ptxas contracts: read from the SASS that it makes of a module.

ptxas gives a contracted instruction the line of the sum, and says by `-lineinfo` which line of the text each
instruction comes from; so the text is printed with one instruction a line. A sum that left no instruction of its own
(one that is never needed, or was merged with another like it) is taken to be contracted if nothing else reads its
product, which is when ptxas contracts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.translate.arithmetic import Fused
from ptxlab.emulate.translate.contraction import Pair, Pairs
from ptxlab.native.cache import cached
from ptxlab.syntax import format, parse
from ptxlab.toolchain import find_assembler
from ptxlab.toolchain.disassembly import SassInstruction
from ptxlab.toolchain.lowering import side_by_side
from ptxlab.toolchain.tools import find

Lines = Mapping[int, Sequence[SassInstruction]]
VERSION = 2  # of what is kept on disk
KEPT = 64  # kernels that are remembered in this process

# A product and a sum in one instruction, for f32, f64 and halves; with a factor of 1 it is a sum alone, and one of
# zeros is how a constant gets into a register.
_FUSED = re.compile(r"(?:FFMA|DFMA|HFMA2)\b")
_ALONE = re.compile(r"\S+ \S+ (?:\S+, 1, |\S+, 1, 1, |-?RZ, -?RZ, )")
_PRODUCT = re.compile(r"(?:FMUL|DMUL|HMUL2)\b")


def fused_by_ptxas(module: ir.Module, kernel: ir.Function, digest: str, architecture: str) -> dict[str, Fused]:
    """What ptxas makes of the arithmetic of each function that the kernel reaches, by name."""
    key = f"{architecture} {kernel.name} {digest}"
    if key not in _known:
        if len(_known) >= KEPT:
            _known.clear()
        _known[key] = _ask(module, kernel, key, architecture)
    return _known[key]


_known: dict[str, dict[str, Fused]] = {}


def _ask(module: ir.Module, kernel: ir.Function, key: str, architecture: str) -> dict[str, Fused]:
    """What ptxas does, now or when it was asked before; a kernel where it has no choice needs no ptxas."""
    pairs = {function.name: Pairs(function) for function in layout.reachable(module, kernel)}
    pairs = {name: found for name, found in pairs.items() if found.all or found.constant_quotients()}
    if not pairs:
        return {}
    tool, disassembler = find_assembler(module.version), find("nvdisasm")

    def read() -> bytes:
        text = format(module)
        listing = side_by_side(text, architecture, tool=tool, disassembler=disassembler)
        lines = {row.line: row.sass for row in listing.rows}
        again = parse(text)
        found = {}
        for name, one in pairs.items():
            line_of = _lines(text, again[name])
            found[name] = list(_fused(one, line_of, lines).items()), _folds(one, line_of, lines)
        return json.dumps(found).encode()

    kept = json.loads(cached(f"contraction {VERSION} {tool.version} {disassembler.version} {key}", read))
    return {name: Fused(dict(sums), tuple(folds)) for name, (sums, folds) in kept.items()}


def _lines(text: str, function: ir.Function) -> list[int]:
    """The line of each instruction."""
    found, line, at = [], 1, 0
    for instruction in function.instructions():
        assert instruction.start is not None
        line += text.count("\n", at, instruction.start)
        at = instruction.start
        found.append(line)
    return found


def _fused(pairs: Pairs, line_of: Sequence[int], lines: Lines) -> dict[int, int]:
    """The sums that are contracted."""
    by_sum: dict[int, list[Pair]] = {}
    for pair in pairs.all.values():
        by_sum.setdefault(pair.sum, []).append(pair)
    found = {}
    for at, choices in by_sum.items():
        sass = lines.get(line_of[at], ())
        if any(_is_fused(one) for one in sass) if _arithmetic(sass) else pairs.is_only_summed(choices[0].product):
            found[at] = _contracted(choices, line_of, lines).operand
    return found


def _folds(pairs: Pairs, line_of: Sequence[int], lines: Lines) -> list[int]:
    """The quotients by constants that need no reciprocal of the function unit."""
    return [at for at in pairs.constant_quotients() if not any(map(_is_reciprocal, lines.get(line_of[at], ())))]


def _is_reciprocal(one: SassInstruction) -> bool:
    return one.opcode.startswith("MUFU")


def _arithmetic(sass: Iterable[SassInstruction]) -> bool:
    """Whether a sum left an instruction that adds."""
    return any(one.opcode.startswith(("FADD", "DADD", "HADD2")) or _FUSED.match(one.opcode) for one in sass)


def _is_fused(one: SassInstruction) -> bool:
    text = re.sub(r"^@!?U?P\w+\s+", "", one.text).replace(".reuse", "")
    return _FUSED.match(text) is not None and _ALONE.match(text) is None


def _contracted(choices: Sequence[Pair], line_of: Sequence[int], lines: Lines) -> Pair:
    """Of two products the one that left no instruction of its own; ptxas prefers the first."""
    gone = [pair for pair in choices if not _is_left(lines.get(line_of[pair.product], ()))]
    return (gone or choices)[0]


def _is_left(sass: Iterable[SassInstruction]) -> bool:
    """Whether a product has an instruction of its own; what scales the operands of a quotient is under a guard."""
    return any(_PRODUCT.match(one.text) for one in sass)
