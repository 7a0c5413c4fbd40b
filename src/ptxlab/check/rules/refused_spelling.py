"""An instruction that the manual and ptxas 13.4 refuse, and ptxas 13.0 accepts.

It is a warning, an error with `ptxlab check --ptxas 13.4`, and nothing with `--ptxas 13.0`, which is right for a
program that no later ptxas assembles. A driver newer than CUDA 13.0 refuses it when it compiles the PTX itself.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    fence.acquire.gpu;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    fence.acq_rel.gpu;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab.isa.releases import RELEASES
from ptxlab.report import Diagnostic, error, warning

from ..program import Program
from ..releases import tolerated


def check(program: Program) -> Iterator[Diagnostic]:
    newest = RELEASES.get(program.ptxas or "")
    if newest is not None and program.version > newest:
        yield error(
            "refused-spelling",
            "ptxas {} reads PTX up to {}.{}, and this module has `.version {}.{}`".format(
                program.ptxas, *newest, *program.version
            ),
            program.module.span_of(program.module.header_spans.get("version")),
            "too new for it",
        )
    if program.ptxas == "13.0":
        return
    say = error if program.ptxas else warning
    for row, instruction in tolerated(program):
        yield say(
            "refused-spelling",
            f"`{instruction.opcode.text}` is refused: {row.text}",
            program.module.span(instruction),
            "the manual does not have it",
            notes=["ptxas 13.4 refuses it, ptxas 13.0 accepts it"],
            helps=[row.help] if row.help else [],
        )
