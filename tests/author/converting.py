"""Python that `ptxlab python` writes, for its tests."""

import re
from pathlib import Path

from ptxlab.author.convert import to_python
from ptxlab.syntax import parse
from ptxlab.syntax.printer import format_instruction


def written(python: str, file: Path) -> str:
    """The PTX that a Python file writes."""
    file.write_text(python)
    names: dict[str, object] = {"__name__": "converted"}
    exec(compile(python, str(file), "exec"), names)
    return str(names["module"].ptx)  # type: ignore[attr-defined]


def body_of(ptx: str, file: Path) -> str:
    """The body as Python; what that writes are the same instructions, only registers have other numbers."""
    python = to_python(parse(ptx), "module.ptx")
    texts = []
    for module in (parse(ptx), parse(written(python, file))):
        names: dict[str, str] = {}
        lines = [format_instruction(i) for name in module.entries for i in module[name].instructions()]
        texts.append([re.sub(r"%\w+", lambda m: names.setdefault(m[0], f"%{len(names)}"), line) for line in lines])  # noqa: B023
    assert texts[0] == texts[1]
    return python.partition("):\n")[2]


def kernel_of(body: str, parameters: str = ".param .u64 x") -> str:
    registers = ".reg .pred %p<90>; .reg .b32 %r<400>, %s<90>; .reg .b64 %rd<90>;"
    head = ".version 7.0\n.target sm_80\n.address_size 64\n"
    return f"{head}.visible .entry k({parameters})\n{{\n{registers}\n{body}ret;\n}}\n"
