"""LLVM IR, written as text: the body of one function, an instruction a line."""

from __future__ import annotations


class Builder:
    """The lines of a function. `value` names a result, `label` starts a block, `new_label` finds a name for one."""

    __slots__ = ("_count", "is_closed", "label_here", "labels", "lines", "suffix")

    def __init__(self) -> None:
        self.lines: list[str | list[str]] = []
        self.labels = 0  # blocks so far
        self.is_closed = False  # whether the last block has ended with a jump or a return
        self.label_here = ""  # of the block that is being written
        self.suffix = ""  # what each instruction ends with
        self._count = 0

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}{self.suffix}")

    def fresh(self) -> str:
        """A name that no value has."""
        self._count += 1
        return f"%.{self._count}"

    def value(self, operation: str) -> str:
        """Write `%1 = operation` and return `%1`, under a fresh name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {operation}{self.suffix}")
        return name

    def gap(self) -> list[str]:
        """A position in the text that lines can be added to later."""
        lines: list[str] = []
        self.lines.append(lines)
        return lines

    def new_label(self, hint: str = "block") -> str:
        self._count += 1
        return f"{hint}.{self._count}"

    def label(self, name: str) -> None:
        """Start the block `name`; the one before must have ended with a jump or a return."""
        self.lines.append(f"{name}:")
        self.labels += 1
        self.label_here = name
        self.is_closed = False

    def close(self, line: str) -> None:
        """End the block with a jump or a return."""
        self.emit(line)
        self.is_closed = True

    def jump(self, label: str) -> None:
        self.close(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, likely: bool | None = None) -> None:
        """Go to `yes` if the `i1` holds. `likely` says which way is usual (the module defines `!0` and `!1`)."""
        weights = "" if likely is None else f", !prof !{int(likely)}"
        self.close(f"br i1 {condition}, label %{yes}, label %{no}{weights}")

    def phi(self, type: str, *ways: tuple[str, str]) -> str:
        """A value that depends on where the jump came from: texts and the labels of blocks."""
        return self.value(f"phi {type} {', '.join(f'[ {text}, %{label} ]' for text, label in ways)}")

    # Where one text is executed for several threads at a time, a condition may hold in some of them.

    def any(self, condition: str) -> str:
        """Whether a condition holds in some thread."""
        return condition

    def where(self, condition: str, type: str, yes: str, no: str) -> str:
        """`yes` for the threads in which a condition holds that holds in some, else `no`."""
        return yes

    def __str__(self) -> str:
        return "\n".join(line if isinstance(line, str) else "\n".join(line) for line in self.lines)


# What a module that uses `likely` ends with.
METADATA = '!0 = !{!"branch_weights", i32 1, i32 2000}\n!1 = !{!"branch_weights", i32 2000, i32 1}\n'
