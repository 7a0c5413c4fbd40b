"""The PTX of a compiled Numba kernel, as one module with all that is linked to it.

Numba links files of CUDA C++ and PTX by the driver: its own functions for float16 and for arrays, and a user's. Here
their PTX is put before the kernel's. A declaration stays where the definition comes after it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ptxlab import ir
from ptxlab.frameworks.sources import module_from
from ptxlab.syntax import parse
from ptxlab.toolchain import cuda

_HEADER = re.compile(r"^[ \t]*\.(version|target|address_size)\b.*$", re.MULTILINE)
_LINES = re.compile(r"^[ \t]*\.(file|loc)\b.*$|^[ \t]*\.section[^{]*\{[^}]*\}", re.MULTILINE)
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+(\d+)\.(\d+)", re.MULTILINE)
_SHARED = ("common", "weak", "extern")  # what several parts declare is one variable

ARRIVALS = "numba_grid_arrivals"  # the variable that counts blocks which have come to a barrier of the grid
# Of the device runtime library, which there is as machine code only: what waits for all blocks of the grid.
_DEVICE_RUNTIME = """
.global .align 4 .u32 numba_grid_arrivals;
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    st.param.b64 [result], 1;
    ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    bar.sync 0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %tid.z;
    or.b32 %r1, %r1, %r2;
    or.b32 %r1, %r1, %r3;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra passed;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %nctaid.y;
    mov.u32 %r3, %nctaid.z;
    mul.lo.u32 %r1, %r1, %r2;
    mul.lo.u32 %r1, %r1, %r3;
    atom.add.acq_rel.gpu.global.u32 %r4, [numba_grid_arrivals], 1;
    div.u32 %r5, %r4, %r1;
    add.u32 %r5, %r5, 1;
    mul.lo.u32 %r6, %r5, %r1;
waiting:
    ld.acquire.gpu.global.u32 %r7, [numba_grid_arrivals];
    setp.lt.u32 %p2, %r7, %r6;
    @%p2 bra waiting;
passed:
    bar.sync 0;
    st.param.b32 [result], 0;
    ret;
}
"""


def module_of(kernel: Any, capability: tuple[int, int, str]) -> ir.Module:
    """The module of a `_Kernel` of Numba."""
    library = kernel._codelibrary
    texts = [one.rstrip("\0") for one in library.get_asm_strs(cc=capability)]
    texts += [_ptx_of(one, capability) for one in library._linking_files]
    entry = next(number for number, text in enumerate(texts) if re.search(r"\.entry\s", text))
    main = texts.pop(entry)
    if library.needs_cudadevrt:
        texts.insert(0, _DEVICE_RUNTIME)
    name = kernel.py_func.__name__ if hasattr(kernel, "py_func") else kernel.entry_name
    return _module(main, tuple(texts), name)


@lru_cache(maxsize=256)
def _module(main: str, others: tuple[str, ...], name: str) -> ir.Module:
    numba = Path(str(import_module("numba.cuda").__file__)).parent
    return module_from(_joined(main, others) if others else main, f"{name}.ptx", numba)


def _ptx_of(one: object, capability: tuple[int, int, str]) -> str:
    """The PTX of a file, or of code in memory, that is linked to a kernel."""
    code = import_module("numba.cuda.cudadrv.linkable_code").LinkableCode.from_path_or_obj(one)
    kind = type(code).__name__
    if kind == "PTXSource":
        return code.data if isinstance(code.data, str) else str(code.data.decode())
    if kind != "CUSource":
        raise NotImplementedError(f"the kernel is linked with {code.name!r}: only CUDA C++ and PTX can be linked here")
    major, minor, suffix = capability
    text = code.data if isinstance(code.data, str) else code.data.decode()
    made = cuda(text, f"sm_{major}{minor}{suffix}", [*_includes(), "-rdc=true"], name=f"{code.name.strip('<>')}.cu")
    assert made.source is not None
    return made.source.text


def _includes() -> list[str]:
    """Options for the headers that Numba brings along."""
    here = Path(str(import_module("numba.cuda.dispatcher").__file__)).parent
    versions = sorted((here / "include").glob("[0-9]*"), key=lambda path: int(path.name))
    return [f"-I{path}" for path in (*versions[-1:], here / "memory_management")]


def _joined(main: str, others: tuple[str, ...]) -> str:
    """One text of all: what others define comes first, each function is defined once."""
    header = "".join(f"{found[0]}\n" for found in _HEADER.finditer(main))
    versions = [tuple(map(int, found)) for text in (main, *others) for found in _VERSION.findall(text)]
    header = _VERSION.sub(".version {}.{}".format(*max(versions)), header)
    parts = [*(_LINES.sub("", _HEADER.sub("", other)) for other in others), _HEADER.sub("", main)]
    functions = [one for part in parts for one in _items(header + part) if isinstance(one, ir.Function)]
    linkages = {one.name: one.linkage for one in functions if one.body is not None}
    for one in functions:
        if one.body is not None and not one.returns:
            parts = [_without_result(part, one.name) for part in parts]
    declared, defined = set[str](), set[str]()
    return header + "\n".join(_once(header, part, linkages, declared, defined) for part in parts)


def _without_result(text: str, name: str) -> str:
    """A part that calls a function without a result as one that has none.

    To Numba it returns `None`, a pointer, and linkers do not compare declarations; nothing uses what is read of it.
    """
    return re.sub(rf"\bcall((?:\.uni)?)\s*\([^()]*\)\s*,\s*({re.escape(name)})\b", r"call\1 \2", text)


def _items(text: str) -> list[ir.Function | ir.Declaration]:
    return [one for one in parse(text, name="linked.ptx").items if isinstance(one, ir.Function | ir.Declaration)]


def _once(header: str, part: str, linkages: dict[str, str | None], declared: set[str], defined: set[str]) -> str:
    """A part without what was declared or defined before; `linkages` has those of all functions that are defined."""
    text = header + part
    kept, end = "", len(header)
    for one in _items(text):
        assert one.start is not None
        assert one.end is not None
        kept += text[end : one.start]
        end = one.end
        whole = text[one.start : end]
        if isinstance(one, ir.Declaration):
            if not all(variable.name in defined and variable.linkage in _SHARED for variable in one.variables):
                kept += whole
            defined.update(variable.name for variable in one.variables if variable.linkage not in (None, "extern"))
            continue
        if one.name in defined or (one.body is None and one.name in declared):
            continue
        (declared if one.body is None else defined).add(one.name)
        if one.linkage == "extern" and one.name in linkages:  # ptxas refuses `.extern` before a definition
            linkage = linkages[one.name]
            whole = whole.replace(".extern", f".{linkage}" if linkage else "", 1)
        kept += whole
    return kept + text[end:]
