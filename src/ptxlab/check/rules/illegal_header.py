"""The header of the file is wrong: its version, its target or its address size.

A file starts with `.version`, `.target` and, if it has one, `.address_size`, in this order. Each target came with a
version of PTX and needs that version or a later one. Of several targets the last one counts.

Wrong:

```ptx
.version 7.0
.target sm_90
.entry k() { ret; }
```

Right:

```ptx
.version 7.8
.target sm_90
.entry k() { ret; }
```
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ptxlab import ir
from ptxlab.isa.releases import EARLIER_TARGETS
from ptxlab.isa.targets import TARGETS, VERSIONS, Version, target_named
from ptxlab.report import Diagnostic, Label, error
from ptxlab.report.nearest import nearest

from ..program import Program

OPTIONS = ("texmode_unified", "texmode_independent", "debug", "map_f64_to_f32")


def check(program: Program) -> Iterator[Diagnostic]:
    module = program.module
    yield from _check_version(module)
    yield from _check_options(module)
    yield from _check_targets(module, EARLIER_TARGETS.get(program.ptxas or "", {}))
    yield from _check_address_size(module)


def _check_version(module: ir.Module) -> Iterator[Diagnostic]:
    newest = VERSIONS[-1]
    # What a later toolkit writes is read as the newest version that is known; what is new in it is refused where it is.
    is_later = newest < module.version < (newest[0] + 1, 0)
    if module.version not in VERSIONS and not is_later:
        yield error(
            "illegal-header",
            f"there is no PTX version {module.version[0]}.{module.version[1]}",
            module.span_of(module.header_spans.get("version")),
            "unknown version",
            notes=[f"the newest that ptxlab knows is {newest[0]}.{newest[1]}"],
        )


def _check_options(module: ir.Module) -> Iterator[Diagnostic]:
    """Words of `.target` after the architecture."""
    target_span = module.span_of(module.header_spans.get("target"))
    if module.targets and module.targets[0] in OPTIONS:
        yield error("illegal-header", f"`.target` begins with `{module.targets[0]}`, not with an architecture",
                    target_span, "an architecture comes first",
                    helps=["start with the architecture, such as `sm_80`"])  # fmt: skip
    for before, word in pairwise(module.targets):
        if word == "map_f64_to_f32" and before in TARGETS and target_named(before).number >= 13:
            yield error("illegal-header", f"`{before}` has `.f64`, so `map_f64_to_f32` is not for it", target_span,
                        "only below `sm_13`", helps=["remove `map_f64_to_f32`"])  # fmt: skip
    if {"texmode_unified", "texmode_independent"} <= set(module.targets):
        yield error("illegal-header", "`texmode_unified` and `texmode_independent` exclude each other", target_span,
                    "one of them too many")  # fmt: skip
    if "debug" in module.targets and not any(isinstance(item, ir.Section) for item in module.items):
        yield error("illegal-header", "`.target` says `debug`, and the module has no debug information", target_span,
                    "there is no `.section`", helps=["remove `debug`, or compile with `-G`"])  # fmt: skip


def _check_targets(module: ir.Module, earlier: Mapping[str, Version]) -> Iterator[Diagnostic]:
    version_span = module.span_of(module.header_spans.get("version"))
    target_span = module.span_of(module.header_spans.get("target"))
    for word in module.targets:
        if word in OPTIONS:
            continue
        if word not in TARGETS:
            meant = nearest(word, (*TARGETS, *OPTIONS))
            yield error(
                "illegal-header",
                f"there is no target `{word}`",
                target_span,
                "unknown target",
                helps=[f"did you mean `{meant}`?"] if meant else [],
            )
        elif module.version in VERSIONS and module.version < earlier.get(word, TARGETS[word]) and module.items:
            # ptxas checks it when something follows
            needed = TARGETS[word]
            yield error(
                "illegal-header",
                f"`.target {word}` needs `.version {needed[0]}.{needed[1]}`, "
                f"this module says `{module.version[0]}.{module.version[1]}`",
                target_span,
                f"came with PTX {needed[0]}.{needed[1]}",
                others=[Label(version_span, "the version of this module")] if version_span else [],
                helps=[f"raise the version to `{needed[0]}.{needed[1]}`"],
            )


def _check_address_size(module: ir.Module) -> Iterator[Diagnostic]:
    if module.address_size == 32:
        yield error(
            "illegal-header",
            "`.address_size 32` is no longer supported",
            module.span_of(module.header_spans.get("address_size")),
            "CUDA 13 compiles for 64-bit addresses only",
            helps=["write `.address_size 64`, and keep addresses in 64-bit registers"],
        )
    elif module.address_size not in (None, 64):
        yield error(
            "illegal-header",
            f"`.address_size` is {module.address_size}, expected 64",
            module.span_of(module.header_spans.get("address_size")),
            "64 belongs here",
        )
