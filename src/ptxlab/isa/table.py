"""All forms of the instruction set, gathered from the chapters."""

from collections.abc import Collection
from functools import cache
from importlib import import_module

from .form import DECLARED, Form

# One module a chapter of the manual; each declares its instructions with `@form`. Beside it, the first words of their
# opcodes: a chapter is imported when one of these is met, and a file needs few of them.
CHAPTERS = {
    "integer": (
        "add sub mul mad clmad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi szext bmsk"
        " dp4a dp2a"
    ),
    "extended_precision": "add addc sub subc mad madc",
    "floating_point": "testp copysign add sub mul fma mad div abs neg min max rcp sqrt rsqrt sin cos lg2 ex2 tanh",
    "half": "add sub mul fma neg abs min max tanh ex2",
    "mixed_precision": "add sub mul fma",
    "alternate": "add sub mul fma",
    "compare": "setp set selp slct",
    "logic": "and or xor not cnot lop3 shf shl shr",
    "move": "mov prmt cvta isspacep",
    "memory": "ld ldu st prefetch prefetchu applypriority discard createpolicy",
    "convert": "cvt",
    "async_copy": "cp",
    "bulk_copy": "cp applypriority st red",
    "tensor_copy": "cp applypriority fabric",
    "tensormap": "tensormap",
    "texture": "tex tld4 txq istypep",
    "surface": "suld sust sured suq",
    "control": "bra brx call ret exit",
    "barrier": "bar barrier membar fence",
    "mbarrier": "mbarrier",
    "mbarrier_wait": "mbarrier",
    "atomic": "atom red",
    "warp": "shfl vote match redux activemask elect",
    "cluster": "mapa getctarank griddepcontrol clusterlaunchcontrol",
    "multimem": "multimem",
    "fabric": "fabric",
    "matrix": "mma",
    "matrix_sparse": "mma",
    "matrix_scaled": "mma",
    "matrix_wmma": "wmma",
    "matrix_move": "ldmatrix stmatrix movmatrix",
    "sparsity": "spcompress spdecompress",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05",
    "tcgen05_mma": "tcgen05",
    "tcgen05_scaled": "tcgen05",
    "stack": "stacksave stackrestore alloca",
    "video": (
        "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2"
        " vabsdiff4 vmin2 vmin4 vmax2 vmax4 vset2 vset4"
    ),
    "miscellaneous": "brkpt nanosleep pmevent trap setmaxnreg",
}


@cache
def _chapters() -> dict[str, list[str]]:
    """The chapters that declare opcodes of each first word."""
    found: dict[str, list[str]] = {}
    for chapter, words in CHAPTERS.items():
        for head in words.split():
            found.setdefault(head, []).append(chapter)
    return found


def heads() -> Collection[str]:
    """The first words of all opcodes."""
    return _chapters().keys()


@cache
def forms_of(head: str) -> tuple[Form, ...]:
    """The forms whose opcode starts with this word, in the order they are declared; none if there is no such word."""
    chapters = _chapters().get(head, ())
    for chapter in chapters:  # one may declare forms for the functions of another: all are imported first
        import_module(f"{__package__}.chapters.{chapter}")
    return tuple([build() for chapter in chapters for build in DECLARED[chapter, head]])


def forms() -> tuple[Form, ...]:
    """Every form of the instruction set."""
    return tuple([form for head in heads() for form in forms_of(head)])
