"""Tensor memory that stays allocated, and allocation after the right was given up."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "unfreed-tensor-memory"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;"
FREE = "ld.shared.b32 %r9, [slot]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 128;"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
FIRST_WARP = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;"
ALL_WARPS = "mov.u32 %r1, %ntid.x; setp.lt.u32 %p1, %r1, 32;"
SLOT = ".shared .align 4 .b32 slot;"


def blackwell(body: str, before: str = SLOT) -> str:
    return kernel(body, target="sm_100a", version="8.6", before=before)


KEPT = "`k` allocates 128 columns of tensor memory and never frees them"
WRONG = {
    "never freed": (ALLOC, KEPT),
    "never freed, by one warp": (f"{FIRST_WARP} @!%p1 bra DONE;\n{ALLOC}\n{RELINQUISH}\nDONE:", KEPT),
    "freed before": (f"mov.u32 %r9, 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 128;\n{ALLOC}", KEPT),
    "return in between": (f"{ALL_WARPS} @!%p1 bra FREE;\n{ALLOC}\nret;\nFREE: {FREE}", KEPT),
    "another warp frees before": (f"{FIRST_WARP} @!%p1 bra A;\n{FREE}\nA: {ALLOC}", KEPT),
    "a number in a register": (
        f"mov.u32 %r2, 64;\n{ALLOC.replace('128', '%r2')}",
        "`k` allocates columns of tensor memory and never frees them",
    ),
    "both blocks": (ALLOC.replace("::1", "::2"), KEPT),
}
RIGHT = {
    "freed": f"{ALLOC}\nbar.sync 0;\n{FREE}",
    "guarded": f"{FIRST_WARP}\n@%p1 {ALLOC}\nbar.sync 0;\nld.shared.b32 %r9, [slot];\n"
    "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 128;",
    "in branches of one warp": f"{FIRST_WARP} @!%p1 bra A;\n{ALLOC}\n{RELINQUISH}\nA: bar.sync 0;\n"
    f"@!%p1 bra B;\n{FREE}\nB:",
    "by another warp": f"{FIRST_WARP} @!%p1 bra FREE;\n{ALLOC}\nbar.sync 0;\nret;\nFREE: bar.sync 0;\n{FREE}",
    "by another warp, after its own work": f"{FIRST_WARP} @%p1 bra ALLOC;\nsetp.gt.u32 %p2, %r1, 95;\n@%p2 bra DONE;\n"
    f"bar.sync 1, 96;\n{FREE}\nbra DONE;\nALLOC: {ALLOC}\nbar.sync 1, 96;\nDONE:",
    "in a loop": f"mov.u32 %r2, 0;\nAGAIN:\n{ALLOC}\n{FREE}\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 4;\n"
    "@%p2 bra AGAIN;",
    "an early return beside it": f"{FIRST_WARP}\n{ALLOC}\n@%p1 ret;\n{FREE}",
    "relinquished in a loop's last turn": f"mov.u32 %r2, 0;\nAGAIN:\n{ALLOC}\n{FREE}\nsetp.eq.u32 %p2, %r2, 3;\n"
    f"@%p2 bra LAST;\nadd.u32 %r2, %r2, 1;\nbra AGAIN;\nLAST: {RELINQUISH}",
}


@pytest.mark.parametrize("name", WRONG)
def test_kept(name: str) -> None:
    body, message = WRONG[name]
    text = blackwell(body)
    (found,) = findings(text, CODE)
    assert (found.level, found.message) == ("warning", message)
    assert found.line == line_of(text, "tcgen05.alloc.")


@pytest.mark.parametrize("name", RIGHT)
def test_freed(name: str) -> None:
    assert findings(blackwell(RIGHT[name]), CODE) == []


@pytest.mark.parametrize(
    "body",
    [
        f"{RELINQUISH}\n{ALLOC}\n{FREE}",
        f"{FIRST_WARP}\n@%p1 {RELINQUISH}\n@%p1 {ALLOC}\n{FREE}",
        f"{RELINQUISH}\n{FIRST_WARP} @%p1 bra A;\nmembar.cta;\nA:\n{ALLOC}\n{FREE}",
        f"{FIRST_WARP} @%p1 bra A;\nmembar.cta;\nA:\n{RELINQUISH}\n@%p1 bra B;\nmembar.cta;\nB:\n{ALLOC}\n{FREE}",
    ],
)
def test_allocated_too_late(body: str) -> None:
    text = blackwell(body)
    (found,) = findings(text, CODE)
    assert found.message == "tensor memory is allocated after the block gave up the right to"
    assert found.line == line_of(text, "tcgen05.alloc.")
    assert found.labels[1].text == "gives up the right"


def test_a_function_may_free_it() -> None:
    free = f"{SLOT}\n.func free() {{ .reg .b32 %r<10>; {FREE} ret; }}"
    assert findings(blackwell(f"{ALLOC}\nbar.sync 0;\ncall free;", before=free), CODE) == []
    take = f"{SLOT}\n.func take() {{ {ALLOC} ret; }}"
    assert findings(blackwell(f"call take;\n{FREE}", before=take), CODE) == []
