"""Which products and sums ptxas contracts: read from the SASS that it makes of a module.

ptxas gives a contracted instruction the line of the sum, and says by `-lineinfo` which line of the text each
instruction comes from; so the text is printed with one instruction a line. A sum that left no instruction of its own
(one that was merged with another like it, or became half of a pair) is taken to be contracted if its product left none
either, nothing else that is needed reads that product, and all is in one block, which is when ptxas contracts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.translate.arithmetic import Fused
from ptxlab.emulate.translate.contraction import ProductSum, ProductSums
from ptxlab.native.cache import cached
from ptxlab.syntax import format, parse
from ptxlab.toolchain import find_assembler
from ptxlab.toolchain.disassembly import SassInstruction
from ptxlab.toolchain.lowering import side_by_side
from ptxlab.toolchain.tools import find

Lines = Mapping[int, Sequence[SassInstruction]]
VERSION = 7  # of what is kept on disk
KEPT = 64  # kernels that are remembered in this process

# What adds, multiplies, or does both, in f32, f64 and halves; the `2` are pairs, which ptxas also makes of scalars.
_SUM = re.compile(r"(?:FADD2?|DADD|HADD2)\b(?!\.F32)")  # `HADD2.F32` converts
_PRODUCT = re.compile(r"(?:FMUL2?|DMUL|HMUL2)\b")
_BOTH = re.compile(r"(?:FFMA2?|DFMA|HFMA2)\b")
# Of those that do both: with a factor of 1 it is a sum, with an addend of -0 a product, of zeros a constant.
_ONE_FACTOR = re.compile(r"\S+ \S+ \S+, 1, (?:1, )?")
_NO_ADDEND = re.compile(r".*, -RZ(?:\.H0_H0)?$")
_CONSTANT = re.compile(r"\S+ \S+ -?RZ, -?RZ, ")


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
    pairs = {function.name: ProductSums(function) for function in layout.reachable(module, kernel)}
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


def _fused(pairs: ProductSums, line_of: Sequence[int], lines: Lines) -> dict[int, int]:
    """The sums that are contracted."""
    by_sum: dict[int, list[ProductSum]] = {}
    for pair in pairs.all.values():
        by_sum.setdefault(pair.sum, []).append(pair)
    found = {}
    for at, choices in by_sum.items():
        sass = lines.get(line_of[at], ())
        kinds = [_kind(one) for one in sass if not pairs.is_half(at) or _is_scalar(one)]
        fused, plain = kinds.count("both"), kinds.count("sum")  # several, where ptxas repeats code
        if not fused and not plain:
            choices = [pair for pair in choices if not _is_needed(pairs, pair, line_of, lines)]
        if choices and fused >= plain:
            found[at] = _contracted(pairs, choices, line_of, lines).operand
    return found


def _is_scalar(one: SassInstruction) -> bool:
    """Whether an instruction on halves is of one: a pair may be of other lines, too."""
    sources = re.findall(r"[-|]?\bR(?:\d+|Z)[.\w]*", one.text)[1:]
    return all(".H0_H0" in source or ".H1_H1" in source or "RZ" in source for source in sources)


def _kind(one: SassInstruction) -> str | None:
    """Whether an instruction adds, multiplies or does both."""
    text = re.sub(r"^@!?U?P\w+\s+", "", one.text).replace(".reuse", "")
    if _SUM.match(text):
        return "sum"
    if _PRODUCT.match(text):
        return "product"
    if not _BOTH.match(text) or _CONSTANT.match(text):
        return None
    return "sum" if _ONE_FACTOR.match(text) else "product" if _NO_ADDEND.match(text) else "both"


def _folds(pairs: ProductSums, line_of: Sequence[int], lines: Lines) -> list[int]:
    """The quotients by constants that need no reciprocal of the function unit."""
    return [at for at in pairs.constant_quotients() if not any(map(_is_reciprocal, lines.get(line_of[at], ())))]


def _is_reciprocal(one: SassInstruction) -> bool:
    return one.opcode.startswith("MUFU")


def _contracted(pairs: ProductSums, choices: Sequence[ProductSum], line_of: Sequence[int], lines: Lines) -> ProductSum:
    """Of two products the one that left no instruction of its own, or is not the addend; ptxas prefers the first."""
    gone = [pair for pair in choices if not _is_needed(pairs, pair, line_of, lines)]
    if not gone:
        addends = {_registers(one)[-1] for one in lines.get(line_of[choices[0].sum], ()) if _kind(one) == "both"}
        gone = [pair for pair in choices if not addends & _results(lines.get(line_of[pair.product], ()))]
    return (gone or choices)[0]


def _is_needed(pairs: ProductSums, pair: ProductSum, line_of: Sequence[int], lines: Lines) -> bool:
    """Whether a product is computed by itself, for others than sums that are contracted."""
    return _is_left(lines.get(line_of[pair.product], ())) or not pairs.is_only_summed(pair.product)


def _results(sass: Iterable[SassInstruction]) -> set[str]:
    """The registers that products are in."""
    return {_registers(one)[0] for one in sass if _kind(one) == "product"}


def _registers(one: SassInstruction) -> list[str]:
    """The registers of an instruction, the result first."""
    return re.findall(r"\bR(?:\d+|Z)\b", one.text) or [""]


def _is_left(sass: Iterable[SassInstruction]) -> bool:
    """Whether a product has an instruction of its own; what scales the operands of a quotient is under a guard."""
    return any(_kind(one) == "product" and not one.text.startswith("@") for one in sass)
