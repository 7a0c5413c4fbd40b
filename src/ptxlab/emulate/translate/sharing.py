"""What checked native code may access of a kernel's own: its tables and the records on its stack."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

from ptxlab.native import bounds
from ptxlab.native.engine import Library
from ptxlab.native.functions import signature
from ptxlab.native.modes import CHECKED
from ptxlab.native.translate import declaration_text

TABLES = ("share.tables", "share.constants")  # functions of a kernel that is checked, for the host


def sharing(pointer: str, type: str, share: Callable[..., None] = bounds.share) -> list[str]:
    """Lines that let native code access memory of the LLVM type `type`; none where code is unchecked."""
    if not CHECKED:
        return []
    size = f"ptrtoint (ptr getelementptr ({type}, ptr null, i64 1) to i64)"
    return [f'  call void @"{signature(share).symbol}"(ptr {pointer}, i64 {size})']


def sharing_function(name: str, pointers: Mapping[str, str], beside: str = "") -> str:
    """A function `name` that does so for constants, given with their types; `beside` is the text it becomes part of."""
    if not CHECKED:
        return ""
    lines = [line for pointer, type in pointers.items() for line in sharing(pointer, type, bounds.share_constant)]
    declarations = [declaration_text(share) for share in (bounds.share, bounds.share_constant)]
    known = "".join(declaration for declaration in declarations if declaration not in beside)
    return "\n".join([f"{known}define void @{name}() nounwind {{", *lines, "  ret void", "}\n"])


def share_tables(library: Library, texts: int) -> None:
    """Let native code access the tables of a kernel, which was made from one text or two."""
    for name in TABLES[:texts]:
        ctypes.CFUNCTYPE(None)(library.address(name))()
