"""All forms of the instruction set, gathered from the chapters."""

from functools import cache
from importlib import import_module

from .form import FORMS, Form

# One module a chapter of the manual; each declares its instructions with `@form`.
CHAPTERS = """
integer
extended_precision
floating_point
half
mixed_precision
compare
logic
move
memory
convert
async_copy
bulk_copy
tensor_copy
tensormap
texture
surface
control
barrier
mbarrier
atomic
warp
cluster
multimem
fabric
matrix
matrix_sparse
matrix_scaled
matrix_wmma
matrix_move
sparsity
wgmma
tcgen05
tcgen05_mma
tcgen05_scaled
stack
video
miscellaneous
""".split()


@cache
def forms() -> tuple[Form, ...]:
    """Every form of every chapter, in the order they are declared."""
    for chapter in CHAPTERS:
        import_module(f"{__package__}.{chapter}")
    return tuple(FORMS)


@cache
def forms_by_head() -> dict[str, list[Form]]:
    """The forms by the first word of their opcode."""
    found: dict[str, list[Form]] = {}
    for form in forms():
        found.setdefault(form.name[0], []).append(form)
    return found
