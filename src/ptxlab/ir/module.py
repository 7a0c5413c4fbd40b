"""The module: one PTX file as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ptxlab.ir import mangled
from ptxlab.ir.declarations import Declaration, Variable
from ptxlab.ir.items import Function, Item
from ptxlab.ir.node import Node
from ptxlab.ir.spans import Range, guard_range, modifier_range, opcode_range, operand_ranges, without_comments
from ptxlab.ir.statements import Comment, Instruction
from ptxlab.report import Source, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptxlab.ir.inlining import SourceFrame


class Placed(Protocol):
    """Anything that may know where it is in the source."""

    start: int | None
    end: int | None


class Module(Node):
    """A program: its header, its items in order, and the source it was read from, if it was read.

    `targets` holds the words of the first `.target`: the architecture, then options such as `debug`. `comments` are
    those before or inside the header. `header_spans` has the source range of `version`, `target` and
    `address_size`, `origins` the texts that the program was compiled from, by the names that `.file` gives them.
    `calls` has, from offsets on, the lines that instructions were written on and those that call them: of kernels in
    Python, whose PTX names the first of these lines alone.
    """

    __slots__ = (
        "__weakref__",
        "address_size",
        "calls",
        "comments",
        "header_spans",
        "items",
        "origins",
        "source",
        "targets",
        "version",
    )  # fmt: skip
    fields = ("version", "targets", "address_size", "comments", "items")

    def __init__(
        self,
        version: tuple[int, int],
        targets: list[str],
        address_size: int | None = None,
        items: list[Item] | None = None,
        comments: list[Comment] | None = None,
        source: Source | None = None,
    ) -> None:
        self.version = version
        self.targets = targets
        self.address_size = address_size
        self.items = [] if items is None else items
        self.comments = [] if comments is None else comments
        self.source = source
        self.header_spans: dict[str, Range] = {}
        self.origins: dict[str, Source] = {}
        self.calls: list[tuple[int, tuple[SourceFrame, ...]]] = []

    def __repr__(self) -> str:
        name = f" {self.source.name}" if self.source is not None else ""
        version = ".".join(map(str, self.version))
        kernels = ", ".join(mangled.titles(self.entries)) or "none"
        return f"<module{name}: PTX {version} for {', '.join(self.targets)}, kernels: {kernels}>"

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import folded_html, table_html, text_html, title_html

        name = f"`{self.source.name}`: " if self.source is not None else ""
        kernels = [self[entry] for entry in self.entries]
        rows = [["kernel", "parameters"], *([one.title, ", ".join(one.parameter_types)] for one in kernels)]
        text = folded_html("PTX", text_html(self.source.text)) if self.source is not None else ""
        version = ".".join(map(str, self.version))
        return title_html(f"{name}PTX {version} for {', '.join(self.targets)}") + table_html(rows) + text

    @property
    def target(self) -> str:
        """The architecture, such as `sm_90a`: the last one that is named, as in ptxas; empty without a header."""
        return next((word for word in reversed(self.targets) if word.startswith("sm_")), "".join(self.targets[:1]))

    @property
    def options(self) -> list[str]:
        """Words of `.target` beside the architecture: `texmode_independent`, `debug`, `map_f64_to_f32`."""
        return [word for word in self.targets if not word.startswith("sm_")]

    @property
    def functions(self) -> list[Function]:
        """Kernels and device functions, prototypes included, in order."""
        return [item for item in self.items if isinstance(item, Function)]

    @property
    def entries(self) -> list[str]:
        """Names of the kernels."""
        return list(dict.fromkeys(item.name for item in self.functions if item.kind == "entry"))

    @property
    def variables(self) -> list[Variable]:
        """Variables declared outside of functions, in order."""
        return [variable for item in self.items if isinstance(item, Declaration) for variable in item.variables]

    def __getitem__(self, name: str) -> Function:
        """The function of that name: its definition if there is one, otherwise its first prototype.

        The name is that of the PTX, or that of C++: `module["gemm<128, float>"]`, and `module["gemm"]` if one is meant.
        """
        found = [item for item in self.functions if item.name == name]
        if not found:
            meant = mangled.matches(name, dict.fromkeys(item.name for item in self.functions))
            if len(meant) > 1:
                raise KeyError(f"`{name}` is one of {', '.join(mangled.titles(meant))}")
            found = [item for item in self.functions if item.name in meant]
        if not found:
            names = mangled.titles(dict.fromkeys(item.name for item in self.functions))
            raise KeyError(f"no function `{name}`; the module has {', '.join(names)}")
        chosen = next((function for function in found if function.body is not None), found[0])
        chosen.module = self
        return chosen

    def set(self, name: str, value: object, dtype: object = None) -> None:
        """Give a `.global` or `.const` variable a value, on every device: as `cudaMemcpyToSymbol` does.

        `value` is an array of the declared type and shape, numbers, or bytes. Compilers declare arrays of C as bytes
        (`.b8`), which take an array of any type that has as many; or say what numbers are to become by `dtype`.
        """
        _variables().set(self, name, value, dtype)

    def get(self, name: str, dtype: object = None, device: str = "auto") -> NDArray[Any]:
        """A copy of a variable, with the declared type and shape; what was declared as bytes may have another `dtype`.

        Every device has variables of its own. "auto" reads those where a kernel of the module ran last, "cpu" the
        emulator's, "cuda" (or "cuda:1") a GPU's. Before the first launch there, they are what `set` gave, or the PTX.
        """
        found: NDArray[Any] = _variables().get(self, name, dtype, device)
        return found

    def inherit(self, other: Module) -> None:
        """Have variables start with what `set` gave to those of another module: of the same program, before it grew."""
        _variables().inherit(self, other)

    def span_of(self, range: Range | None) -> Span | None:
        """The span of a range of offsets."""
        return None if self.source is None or range is None else Span(self.source, *range)

    def span(self, part: Placed) -> Span | None:
        """Where a statement, item or variable is; None in a program that was not parsed."""
        if self.source is None or part.start is None or part.end is None:
            return None
        return Span(self.source, part.start, part.end)

    def name_span(self, function: Function) -> Span | None:
        """Where the name of a function is."""
        if self.source is None or function.name_start is None or function.name_end is None:
            return None
        return Span(self.source, function.name_start, function.name_end)

    def opcode_span(self, instruction: Instruction) -> Span | None:
        """Where the opcode of an instruction is."""
        text = self._text(instruction)
        return None if text is None else self._inside(instruction, opcode_range(text))

    def guard_span(self, instruction: Instruction) -> Span | None:
        """Where the guard of an instruction is, if it has one."""
        text = self._text(instruction)
        range = None if text is None else guard_range(text)
        return None if range is None else self._inside(instruction, range)

    def modifier_span(self, instruction: Instruction, index: int) -> Span | None:
        """Where modifier `index` of an instruction is, with its dot; -1 is the mnemonic."""
        text = self._text(instruction)
        return None if text is None else self._inside(instruction, modifier_range(text, index))

    def operand_span(self, instruction: Instruction, index: int) -> Span | None:
        """Where operand `index` of an instruction is; the whole instruction where there is no such operand."""
        text = self._text(instruction)
        if text is None:
            return None
        ranges = operand_ranges(text)
        return self._inside(instruction, ranges[index] if index < len(ranges) else (0, len(text)))

    def _text(self, instruction: Instruction) -> str | None:
        if self.source is None or instruction.start is None or instruction.end is None:
            return None
        return without_comments(self.source.text[instruction.start : instruction.end])

    def _inside(self, instruction: Instruction, range: Range) -> Span:
        assert self.source is not None
        assert instruction.start is not None
        return Span(self.source, instruction.start + range[0], instruction.start + range[1])


def _variables() -> Any:
    """What reads and writes variables on devices."""
    from ptxlab.services import service  # by what asks for it alone: this module is loaded by every command

    return service("variables")
