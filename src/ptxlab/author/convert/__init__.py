"""From a program to the Python that writes it: `ptxlab python kernel.ptx`.

Each instruction becomes one call, in its order. A register that one instruction writes, before all that read it, is
what that call returns; the others are made at the start and written by `out=`. What has no call of its own, such as
calls of functions, prototypes and debug data, stays PTX text. The Python writes a program with the same machine code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from ptxlab import ir
from ptxlab.author import __all__ as PUBLIC  # noqa: N812 - names that the Python uses for something else
from ptxlab.author.convert.body import Body
from ptxlab.author.convert.calls import space_of
from ptxlab.author.convert.comments import comment_lines
from ptxlab.syntax.print_declarations import print_declaration
from ptxlab.syntax.printer import format

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def to_python(module: ir.Module, name: str = "module.ptx") -> str:
    """Python whose module is this one.

    >>> from ptxlab import parse
    >>> print(to_python(parse(".version 8.0 .target sm_80 .visible .entry main{ret;}")).splitlines()[-1])
        ptx.ret()
    """
    return "\n".join(_Writer(module, name).write()) + "\n"


class _Writer:
    """Writes a module, item by item."""

    def __init__(self, module: ir.Module, name: str) -> None:
        self.module = module
        self.name = name
        self.classes: set[str] = set()
        self.names: dict[str, str] = {}  # Python names of the variables of the module
        self.taken = {"module", *PUBLIC}

    def write(self) -> Iterator[str]:
        items = [line for item in self.module.items for line in self._item(item)]
        imports = sorted({"Module", *self.classes}, key=lambda name: (name[0].islower(), name))
        yield f'"""{_docstring_text(self.name)} in Python; `module.ptx` is the PTX that it writes.'
        yield ""
        yield "Each call is one instruction. It returns the register that it writes, or writes the one after `out=`."
        yield '"""'
        yield ""
        yield f"from ptxlab.author import {', '.join(imports)}"
        yield ""
        yield self._module()
        yield from items

    def _module(self) -> str:
        module = self.module
        words = [f'"{module.target}"', '"{}.{}"'.format(*module.version)]
        if module.address_size != 64:
            words.append(f"address_size={module.address_size}")
        if module.options:
            words.append(f"options={tuple(module.options)!r}")
        words.append("untyped=True")
        if self._keeps_lines:
            words.append("lines=False")
        return f"module = Module({', '.join(words)})"

    @property
    def _keeps_lines(self) -> bool:
        """Whether the lines of the original's own source stay: a program for the debugger has code for each."""
        return "debug" in self.module.options

    def _item(self, item: ir.Item) -> Iterator[str]:
        if isinstance(item, ir.Function) and item.body is not None:
            yield from self._function(item)
        elif isinstance(item, ir.Declaration):
            yield ""
            for variable in item.variables:
                yield self._variable(variable)
        elif isinstance(item, ir.Comment):
            yield from comment_lines(item)
        elif not isinstance(item, (ir.File, ir.Section, ir.SourceSection, ir.Location)) or self._keeps_lines:
            yield ""
            yield f"module.text({_quoted(_item_text(item))})"

    def _variable(self, variable: ir.Variable) -> str:
        text = print_declaration(ir.Declaration([variable]), "")
        name = self.python_name(variable.name)
        self.names[variable.name] = name
        return f"{name} = module.declare({_quoted(text)})"

    def python_name(self, name: str) -> str:
        """A Python name for one of PTX, of its own."""
        stem = re.sub(r"\W", "_", name.lstrip("%").replace("$", "_")) or "_"
        if not _IDENTIFIER.fullmatch(stem) or keyword.iskeyword(stem):
            stem = f"_{stem}"
        chosen, number = stem, 1
        while chosen in self.taken:
            number += 1
            chosen = f"{stem}_{number}"
        self.taken.add(chosen)
        return chosen

    def _function(self, function: ir.Function) -> Iterator[str]:
        taken = set(self.taken)
        body = Body(function, self.python_name, self.names, self._keeps_lines)
        yield ""
        yield ""
        head = self._kernel_head(function, body)
        if head is None:
            yield f"with module.body({_quoted(_head_text(function))}):"
            lines = [
                f"    {body.parameter(variable)} = ptx.symbol({variable.name!r}, {space_of(variable)!r})"
                for variable in (*function.returns, *function.parameters)
                if variable.state_space == "param" and variable.name != "_"
            ]
        else:
            yield from head
            lines = []
        lines += body.write()
        self.classes |= {"ptx", *body.classes}
        yield from lines or ["    pass"]
        self.taken = taken

    def _kernel_head(self, function: ir.Function, body: Body) -> list[str] | None:
        """`@module.kernel` and `def`, or None where Python cannot say what the head says."""
        if function.kind != "entry" or function.linkage != "visible" or function.attributes:
            return None
        if not _is_plain(function.name) or len({d.name for d in function.directives}) != len(function.directives):
            return None
        directives = []
        for directive in function.directives:
            if not all(isinstance(argument, int) for argument in directive.arguments):
                return None
            arguments = directive.arguments
            value = "True" if not arguments else repr(arguments[0] if len(arguments) == 1 else tuple(arguments))
            directives.append(f"{directive.name}={value}")
        parameters = []
        for variable in function.parameters:
            annotation = self._annotation(variable)
            if annotation is None or not _is_plain(variable.name) or variable.name in self.taken:
                return None
            parameters.append(f"{variable.name}: {annotation}")
        names = [variable.name for variable in function.parameters]
        body.names.update(zip(names, names, strict=True))
        self.taken.update(names)
        decorator = f"@module.kernel({', '.join(directives)})" if directives else "@module.kernel"
        head = f"def {function.name}({', '.join(parameters)}):"
        if len(head) <= 110:
            return [decorator, head]
        return [decorator, f"def {function.name}(", *(f"    {parameter}," for parameter in parameters), "):"]

    def _annotation(self, variable: ir.Variable) -> str | None:
        if variable.state_space != "param" or variable.vector != 1 or variable.attributes or variable.type.kind == "o":
            return None
        if variable.dimensions:
            if variable.type.name != "b8" or len(variable.dimensions) != 1 or variable.pointer is not None:
                return None
            self.classes.add("struct")
            return f"struct[{variable.dimensions[0]}, {variable.align or 1}]"
        if variable.align is not None or variable.type.name == "f16x2":
            return None
        self.classes |= {"param", variable.type.name}
        if variable.pointer is None:
            return f"param[{variable.type.name}]"
        space = f" .{variable.pointer.state_space}" if variable.pointer.state_space else ""
        align = f" .align {variable.pointer.align}" if variable.pointer.align else ""
        return f'param[{variable.type.name}, ".ptr{space}{align}"]'


def _docstring_text(name: str) -> str:
    """The name of a file where no character of it means something to Python."""
    return "".join(c if c.isprintable() else "?" for c in name.replace("\\", "/").replace('"', "'"))


def _is_plain(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and not keyword.iskeyword(name)


def _item_text(item: ir.Item) -> str:
    text = format(ir.Module((1, 0), ["sm_10"], items=[item]))
    return text.split("\n", 2)[2].strip()


def _head_text(function: ir.Function) -> str:
    bare = ir.Function(
        function.kind,
        function.name,
        linkage=function.linkage,
        returns=function.returns,
        parameters=function.parameters,
        directives=function.directives,
        attributes=function.attributes,
    )
    return _item_text(bare).removesuffix(";")


def _quoted(text: str) -> str:
    if "\n" not in text:
        return repr(text)
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""\\\n{escaped}"""' if not escaped.endswith('"') else repr(text)
