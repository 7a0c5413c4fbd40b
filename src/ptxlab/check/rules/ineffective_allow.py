"""A comment that should allow a warning allows nothing: it names no warning, or gives no reason.

`// ptxlab: allow unwaited-copy, the caller waits` after a statement, or above it, silences one warning of
`ptxlab check` there. The code must be spelled right, and a reason must follow it; otherwise the comment has no effect.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<2>;
    mov.u32 %r1, 0; // ptxlab: allow unwriten-register, overwritten later
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<2>;
    mov.u32 %r1, 0; // ptxlab: allow unwritten-register, overwritten later
    ret;
}
```
"""

import re
from collections.abc import Iterator

from ptxlab.report import Diagnostic, Edit, Help, Span, warning
from ptxlab.report.nearest import distance, nearest

from ..program import Program

_COMMENT = re.compile(r"(?://|/\*|^\s*\*).*?ptxlab:\s*allow\s+([a-z-]+)([ \t,:;]+[^\s*/])?", re.MULTILINE)


def check(program: Program) -> Iterator[Diagnostic]:
    from ptxlab.check.rules import RULES

    source = program.module.source
    if source is None or "ptxlab:" not in source.text:
        return
    codes = [name.replace("_", "-") for name in RULES]
    for comment in _COMMENT.finditer(source.text):
        code, span = comment[1], Span(source, *comment.span(1))
        if code not in codes:
            meant = nearest(code, codes)
            edits = (Edit(span, meant),) if meant and distance(code, meant) == 1 else ()
            helps = [Help(f"did you mean `{meant}`?", edits)] if meant else []
            message = f"no warning of `ptxlab check` has the code `{code}`"
            yield warning("ineffective-allow", message, span, "allows nothing", helps=helps)
        elif comment[2] is None:
            message = "the comment gives no reason, so it has no effect"
            helps = [Help(f"write the reason after the code: `allow {code}, because ...`")]
            yield warning("ineffective-allow", message, span, "a reason must follow", helps=helps)
