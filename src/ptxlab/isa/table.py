"""All forms of the instruction set, gathered from the chapters."""

from collections.abc import Collection
from functools import cache
from importlib import import_module

from .form import DECLARED, Declared, Form

# One module a chapter of the manual; each declares its instructions with `@form`.
CHAPTERS = """
integer
extended_precision
floating_point
half
mixed_precision
alternate
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
mbarrier_wait
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
def _declared() -> dict[str, list[Declared]]:
    for chapter in CHAPTERS:
        import_module(f"{__package__}.chapters.{chapter}")
    found: dict[str, list[Declared]] = {}
    # In the order of the chapters, whichever was imported first.
    for declared in sorted(DECLARED, key=lambda declared: CHAPTERS.index(declared.chapter)):
        found.setdefault(declared.head, []).append(declared)
    return found


def heads() -> Collection[str]:
    """The first words of all opcodes."""
    return _declared().keys()


@cache
def forms_of(head: str) -> tuple[Form, ...]:
    """The forms whose opcode starts with this word, in the order they are declared; none if there is no such word."""
    return tuple([declared.build() for declared in _declared().get(head, ())])


def forms() -> tuple[Form, ...]:
    """Every form of the instruction set."""
    return tuple([form for head in heads() for form in forms_of(head)])
