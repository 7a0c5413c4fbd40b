"""A directive of a function contradicts another, has a value out of range, or belongs to another kind of function.

`.maxntid`, `.reqntid` and the like tune a kernel and follow the parameters of an `.entry`; `.noreturn` and
`.abi_preserve` are promises to a caller and follow those of a `.func` or of a prototype.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() .maxntid 128 .reqntid 128 { ret; }
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() .reqntid 128 { ret; }
```
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from ptxlab import ir
from ptxlab.isa.directives import CONFLICTS, DIRECTIVES, LANGUAGES, NEEDS
from ptxlab.report import Diagnostic, Edit, Help, Label, Span, error

from ..availability import explain
from ..program import Program

# The pragmas with a number, and the least that it may be.
_NUMBERED_PRAGMAS = {"frequency": 1, "mma_throughput": 0, "used_bytes_mask": 0}
_PRAGMAS_OF_BODIES = (*_NUMBERED_PRAGMAS, "enable_smem_spilling")
_OWNERS = {"entry": "kernels", "func": "device functions"}


def check(program: Program) -> Iterator[Diagnostic]:
    for function in program.module.functions:
        yield from _check_all(program, function.directives, function.kind)
        yield from _bare_languages(program, function.directives if function.body is None else ())
    for facts in program.functions:
        for statement in facts.others:
            if isinstance(statement, ir.CallPrototype):
                yield from _check_all(program, statement.directives, "func")
                yield from _bare_languages(program, statement.directives)
            elif isinstance(statement, ir.Pragma):
                for text in statement.strings:
                    yield from _check_pragma(program, statement, text)
    yield from _misplaced_pragmas(program)
    yield from _unknown_locations(program)
    yield from _unknown_files(program)


def _bare_languages(program: Program, directives: Iterable[ir.Directive]) -> Iterator[Diagnostic]:
    """`.language` is said of a body."""
    for directive in directives:
        if directive.name == "language":
            message = "`.language` belongs to a function that has a body"
            yield error(
                "illegal-directive", message, program.module.span(directive), "no body here", helps=["remove it"]
            )


def _unknown_files(program: Program) -> Iterator[Diagnostic]:
    """Source texts of files that no `.file` names."""
    files = {item.index for item in program.module.items if isinstance(item, ir.File)}
    for item in program.module.items:
        for block in item.blocks if isinstance(item, ir.SourceSection) else ():
            if block.file not in files:
                files.add(block.file)
                span = program.module.span(item)
                name = f'.file {block.file} "{block.language}"'
                edits = (Edit(Span(span.source, span.start, span.start), f"{name}\n"),) if span is not None else ()
                message = f"the source section has the text of file {block.file}, and there is no `.file {block.file}`"
                helps = [Help(f"write `{name}` before it", edits)]
                yield error("illegal-directive", message, span, "names a missing file", helps=helps)


def _unknown_locations(program: Program) -> Iterator[Diagnostic]:
    """Code is inlined at a location that a `.loc` before it names."""
    known: set[tuple[int, int, int]] = set()
    for facts in program.functions:
        for statement in facts.others:
            if isinstance(statement, ir.Location):
                location = statement.inlined_at
                if location is not None and location not in known:
                    text = "{} {} {}".format(*location)
                    yield error(
                        "illegal-directive",
                        f"`.loc` says that it is inlined at {text}, which is not a location of earlier code",
                        program.module.span(statement),
                        f"no `.loc {text}` before this",
                        helps=["give the location of the call that was inlined"],
                    )
                known.add((statement.file, statement.line, statement.column))


def _check_pragma(program: Program, pragma: ir.Pragma, text: str) -> Iterator[Diagnostic]:
    """Pragmas that have a number: ptxas checks how the text starts, and then all the rest of it."""
    name = next((name for name in _NUMBERED_PRAGMAS if text.startswith(name)), None)
    if name is None:
        return
    value = text.partition(" ")[2].strip()
    least = _NUMBERED_PRAGMAS[name]
    if not re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", value) or int(value, 16 if value[1:2] in "xX" else 10) < least:
        message = f"the pragma `{name}` has the value `{value}`" if value else f"the pragma `{name}` has no value"
        yield error("illegal-directive", message, program.module.span(pragma), f"expected an integer from {least} on")


def _misplaced_pragmas(program: Program) -> Iterator[Diagnostic]:
    """Pragmas for bodies outside of one."""
    module = program.module
    for item in module.items:
        if isinstance(item, ir.Pragma):
            yield from _check_context(program, item, item.strings)
    for function in module.functions:
        for directive in function.directives:
            if directive.name == "pragma":
                yield from _check_context(program, directive, [str(text) for text in directive.arguments])


def _check_context(program: Program, part: ir.Pragma | ir.Directive, texts: Iterable[str]) -> Iterator[Diagnostic]:
    for text in texts:
        if text.startswith(_PRAGMAS_OF_BODIES):
            message = f"the pragma `{text}` is outside of a function's body"
            yield error("illegal-directive", message, program.module.span(part), "belongs into the body")


def _check_all(program: Program, directives: Sequence[ir.Directive], owner: str) -> Iterator[Diagnostic]:
    given: dict[str, ir.Directive] = {}
    for directive in directives:
        yield from _check_one(program, directive, owner)
        if directive.name in given and owner == "func":  # of those of a kernel, ptxas takes the last
            yield _contradiction(program, f"`.{directive.name}` is given twice", given[directive.name], directive)
        given[directive.name] = directive
    for first, second in CONFLICTS:
        if first in given and second in given:
            message = f"`.{first}` and `.{second}` cannot both be given"
            yield _contradiction(program, message, given[first], given[second])
    for name, needed in NEEDS.items():
        missing = [f"`.{other}`" for other in needed if other not in given]
        if name in given and missing:
            span = program.module.span(given[name])
            message = f"`.{name}` needs {' and '.join(missing)} beside it"
            yield error("illegal-directive", message, span, f"without {' and '.join(missing)}")


def _contradiction(program: Program, message: str, first: ir.Directive, second: ir.Directive) -> Diagnostic:
    other = program.module.span(first)
    return error(
        "illegal-directive",
        message,
        program.module.span(second),
        "one too many",
        others=[Label(other, "the other one")] if other else [],
        helps=["keep one of the two"],
    )


def _check_one(program: Program, directive: ir.Directive, owner: str) -> Iterator[Diagnostic]:
    span = program.module.span(directive)
    known = DIRECTIVES.get(directive.name)
    if (known.owner if known else "entry") not in (owner, "both"):
        message = (
            f"`.{directive.name}` belongs to {_OWNERS['entry' if owner == 'func' else 'func']}, not {_OWNERS[owner]}"
        )
        yield error("illegal-directive", message, span, f"not for {_OWNERS[owner]}", helps=["remove it"])
        return
    if known is None:
        return
    if not known.since.holds(program.version, program.target):
        yield explain(program, f"`.{directive.name}`", known.since, span, "unavailable-feature")
    for value in directive.arguments:
        if isinstance(value, str) and value.lower() not in LANGUAGES:
            message = f"`.language` names {value!r}, expected one of {', '.join(map(repr, LANGUAGES))}"
            yield error("illegal-directive", message, span, "not a language that ptxas knows")
        if isinstance(value, int) and value not in known.values:
            limits = (
                f"{known.values[0]} to {known.values[-1]}" if len(known.values) < 1000 else f"{known.values[0]} or more"
            )
            message = f"`.{directive.name}` is {value}, expected {limits}"
            yield error("illegal-directive", message, span, f"not {limits}")
