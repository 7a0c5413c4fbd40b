"""Mutants of native functions as variants in one runtime; a number in memory for each function says which one runs.

A runtime takes seconds to compile; with a thousand variants it takes a few more, and the process that has it forks for
each mutant or for several at once, chooses them, and runs what may notice it.
"""

import ast
import ctypes
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ptxlab.native import translate
from ptxlab.native.inference import TranslationError
from ptxlab.native.statements import Statements
from ptxlab.native.translate import TranslatedFunction
from tests.mutants.sites import Site
from tests.mutants.trees import ROOT


class Switched:
    """These mutants, by their numbers; those of native functions get variants as the functions are translated."""

    def __init__(self, mutants: dict[int, Site]) -> None:
        self.chosen: frozenset[int] = frozenset()
        self.refused: set[int] = set()  # what native code cannot be
        self._numbers = (ctypes.c_uint32 * len(mutants))()  # of each function that has variants, which one runs
        self._places: dict[tuple[str, int], int] = {}  # of such functions, by where they are
        self._mutants: dict[int, int] = {}  # in which place each of them is
        self._by_file: dict[str, dict[int, Site]] = {}
        for number, site in mutants.items():
            assert number > 0
            self._by_file.setdefault(str(ROOT / site.file), {})[number] = site
        self._plain = translate.unit_of

    def choose(self, numbers: Iterable[int]) -> None:
        """Run these mutants from now on, and no others; also in what is translated later."""
        self.chosen = frozenset(numbers)
        ctypes.memset(self._numbers, 0, ctypes.sizeof(self._numbers))
        for number, place in self._mutants.items():
            self._place(number, place)

    def _place(self, number: int, place: int) -> None:
        self._mutants[number] = place
        if number in self.chosen:
            self._numbers[place] = number

    def install(self) -> None:
        """Translate native functions with their variants from now on: none may be translated yet."""
        assert not translate._UNITS
        translate.unit_of = self._unit_of

    def _unit_of(self, function: Any) -> TranslatedFunction:
        if function not in translate._UNITS:
            plain = self._plain(function)
            variants = list(self._variants(function))
            if variants:
                translate._UNITS[function] = self._switching(plain, variants, self._places[_where(function)])
        return translate._UNITS[function]

    def _variants(self, function: Any) -> Iterable[tuple[int, TranslatedFunction]]:
        code = function.__code__
        sites = self._by_file.get(code.co_filename, {})
        if not sites:
            return
        node = translate._definition(function)
        source = Path(code.co_filename).read_bytes()
        for number, site in sites.items():
            if node.body[0].lineno <= site.line <= (node.end_lineno or 0):
                self._place(number, self._places.setdefault(_where(function), len(self._places)))
                changed = site.apply(source).decode().split("\n")[code.co_firstlineno - 1 : node.end_lineno]
                variant: Any = ast.parse(textwrap.dedent("\n".join(changed))).body[0]
                ast.increment_lineno(variant, code.co_firstlineno - 1)
                statements = Statements(function, variant)
                try:
                    head, body = statements.translate()
                except TranslationError:
                    self.refused.add(number)
                    continue
                globals = statements.guard.globals()
                yield (
                    number,
                    TranslatedFunction(
                        statements.signature, head, body, statements.callees, statements.tables, globals
                    ),
                )

    def _switching(
        self, plain: TranslatedFunction, variants: Sequence[tuple[int, TranslatedFunction]], place: int
    ) -> TranslatedFunction:
        """A function that calls the plain one or one of its variants."""
        found = plain.signature
        gives = "void" if found.result is None else found.result.llvm
        passed = ", ".join(f"{type.llvm} %{name}.in" for name, type in found.parameters)
        end = "  ret void" if found.result is None else f"  ret {gives} %found"
        all = [(0, plain), *variants]
        address = ctypes.addressof(self._numbers) + place * ctypes.sizeof(ctypes.c_uint32)
        labels = " ".join(f"i32 {number}, label %is{number}" for number, _ in variants)
        body = [
            "entry:",
            f"  %number = load i32, ptr inttoptr (i64 {address} to ptr)",
            f"  switch i32 %number, label %is0 [{labels}]",
        ]
        texts, callees, tables, globals = [], dict[Any, None](), dict[str, tuple[int, ...]](), ""
        for number, one in all:
            name = f'@"{found.symbol}"'
            own = f'@"{found.symbol}, {number}"'
            text = one.text("internal").replace(f"{name}(", f"{own}(", 1)
            texts.append(text.replace(" alwaysinline {", " {", 1))
            taken = f"%found{number} = " if found.result is not None else ""
            body += [f"is{number}:", f"  {taken}call {gives} {own}({passed})", end.replace("%found", f"%found{number}")]
            callees.update(dict.fromkeys(one.callees))
            tables.update(one.tables)
            globals += one.globals
        head = plain._head.replace(" alwaysinline", "")
        return TranslatedFunction(found, head, "\n".join(body), callees, tables, "\n".join([globals, *texts]))


def _where(function: Any) -> tuple[str, int]:
    return function.__code__.co_filename, function.__code__.co_firstlineno


def install_runtime(*records: bool) -> None:
    """Have launches, recorded or not, run with a runtime that is not optimized, of functions as they are made now.

    It is linked at once, so that children need not.
    """
    from ptxlab.emulate.runtime.table import COLLECTIVES, ENTRIES, RUNTIME
    from ptxlab.emulate.translate import compile as compiling
    from ptxlab.emulate.translate import effort
    from ptxlab.emulate.translate.runtime_building import _known
    from ptxlab.native.engine import compile_text, load

    roots: list[Callable[..., Any]] = list(dict.fromkeys([*RUNTIME.values(), *COLLECTIVES, *ENTRIES]))
    made = {one: [compile_text(translate.emit(roots, known=_known(one)), speed=0)] for one in records}
    compiling.runtime_code = made.__getitem__  # type: ignore[assignment]
    compiling._linked.update((one, load(code)) for one, code in made.items())
    effort.FEW_THREADS = 0
