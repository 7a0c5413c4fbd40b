"""The kernels that `sanitizer.py` compares by: collected from tests, kept with their arguments and their code."""

import base64
import json
import re
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import ir, kernels
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.gpu import Gpu
from ptxlab.gpu.loading import compile_text
from ptxlab.measure import Host, UnsuitedError
from ptxlab.report import KernelError, PtxError
from ptxlab.syntax import format

ROOT = Path(__file__).resolve().parents[2]
TESTS = [f"tests/emulate/test_{name}.py" for name in ("pages", "races", "hangs", "arguments", "addresses", "stopping")]
TESTS += ["tests/cases"]
GALLERY = "test_gallery.py::test_it_is_right_and_silent_on_the_emulator"
SIZES = ("grid", "block", "shared", "cluster")
HARMLESS = ((), ("data-race",), ("uninitialized-read",))  # what lets a kernel end, most of the time
ALIKE = 2  # kernels of one test that end badly in the same way


def collect(path: Path, target_name: str) -> None:
    """Run the tests of the detectors and keep the kernels that they launch."""
    import pytest

    from ptxlab import launch as door

    cases: dict[str, dict[str, Any]] = {}
    emulate = door.emulate

    class Names:
        test = ""

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
            is_case = item.path.suffix == ".ptx"
            self.test = item.nodeid if is_case else f"{item.path.name}::{item.name}"
            return (yield)

    names = Names()

    def keep(emulated: EmulatedModule, kernel: ir.Function, args: Sequence[Any], options: LaunchOptions) -> Result:
        written = write_arguments(args)
        result = emulate(emulated, kernel, args, replace(options, on_error="collect"))
        sizes = {name: getattr(options, name) for name in SIZES}
        case = {"text": emulated.module.source.text, "entry": kernel.name, **sizes, "args": written}
        if options.blocks is None and options.detectors:
            kept = cases.setdefault(json.dumps(case), {"test": names.test, **case, "emulator": []})
            # What any seed shows, a GPU may do.
            kept["emulator"] = sorted({*kept["emulator"], *(diagnostic.code for diagnostic in result.diagnostics)})
        if options.on_error == "raise" and any(diagnostic.level == "error" for diagnostic in result.diagnostics):
            raise KernelError(result.diagnostics)
        return result

    door.emulate = keep
    target = Gpu(0, "", target_name, 0, 0, 0, (13, 0))
    status = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *TESTS], plugins=[names])
    assert status == 0, "the tests must pass: they say which kernels are wrong"
    door.emulate = emulate
    chosen: list[dict[str, Any]] = []
    excluded: list[dict[str, str]] = []
    for case in [*thin_out(list(cases.values())), *gallery()]:
        reason = compile_case(case, target, len(chosen))
        if reason:
            excluded.append({"test": case["test"], "reason": reason})
        else:
            chosen.append(case)
    path.parent.mkdir(parents=True, exist_ok=True)
    kept_file = {"commit": commit(), "excluded": excluded, "cases": chosen}
    path.write_text(json.dumps(kept_file, indent=1), encoding="utf-8")
    print(f"{len(chosen)} kernels, {sum(bool(case['emulator']) for case in chosen)} of them wrong, "
          f"{sum('kept' in case['text'] for case in chosen)} with loads that are kept, "
          f"{len(excluded)} excluded")  # fmt: skip


def compile_case(case: dict[str, Any], target: Gpu, number: int) -> str:
    """Give a kernel its name and its code for a GPU; why it has none, where that is so."""
    stated = ptxlab.parse(case["text"]).target
    architecture = target.architecture_for(stated)
    if architecture is None:
        return f"the kernel is for {stated}, which this GPU does not run"
    text = case["text"] if case["test"].startswith(GALLERY) else keep_loads(case)  # no load of it is unused
    case["text"] = name_anew(text, case["entry"], number)
    try:
        cubin = compile_text(case["text"], architecture, None)
    except PtxError as refused:
        return f"ptxas refuses it: {refused.diagnostics[0].message}"
    case["cubin"] = base64.b64encode(zlib.compress(cubin)).decode()
    return ""


def thin_out(cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without those that break off a process and are like others of the same test: each costs a process a tool."""
    seen: Counter[tuple[str, ...]] = Counter()
    chosen = []
    for case in cases:
        is_alone = "page" in case["test"] or ".ptx::" in case["test"]  # each is a subject of its own
        kind = (case["test"] if is_alone else case["test"].partition("[")[0], *case["emulator"])
        seen[kind] += 1
        if tuple(case["emulator"]) in HARMLESS or seen[kind] <= ALIKE:
            chosen.append(case)
    return chosen


def keep_loads(case: dict[str, Any]) -> str:
    """The text with a store after every load of 32 bits, where the emulator finds the same in it."""
    before, entry, body = re.split(r"((?:\.visible\s+)?\.entry\b)", case["text"], maxsplit=1)
    changed, count = LOAD.subn(r"\g<0> \g<1>st.global.u32 [%kept_at], \g<2>;", body)
    if not count or not re.search(r"\.reg\s+\.[bus]32\s+[^;]*%r<", body):
        return str(case["text"])
    words = np.prod(case["grid"]) * np.prod(case["block"])
    changed = changed.replace("{", "{" + OWN_WORD, 1)
    text = f"{before}.global .align 4 .b8 kept[{4 * words}];\n{entry}{changed}"
    try:
        found = ptxlab.parse(text)[case["entry"]].launch(
            args=read_arguments(case["args"]), **sizes_of(case), device="cpu", timeout=5, on_error="collect",
        )  # fmt: skip
    except PtxError:
        return str(case["text"])
    same = sorted({diagnostic.code for diagnostic in found.diagnostics}) == case["emulator"]
    return text if same else str(case["text"])


LOAD = re.compile(r"((?:@!?%\w+\s+)?)\bld\.[\w.:]+\s+(%r\d+)\s*,\s*\[[^\]]*\]\s*;")
OWN_WORD = """
    .reg .b32 %kept<3>; .reg .b64 %kept_start, %kept_at;
    mov.u32 %kept0, %ctaid.x; mov.u32 %kept1, %ntid.x; mov.u32 %kept2, %tid.x;
    mad.lo.u32 %kept0, %kept0, %kept1, %kept2;
    mov.u64 %kept_start, kept; mad.wide.u32 %kept_at, %kept0, 4, %kept_start;
"""


def sizes_of(case: dict[str, Any]) -> dict[str, Any]:
    """How large a launch of the kernel is."""
    return {name: case[name] for name in SIZES if name in case}


def name_anew(text: str, entry: str, number: int) -> str:
    """The text with another name of its kernel, also where its address is taken."""
    return re.sub(rf"(?<![\w$%.]){re.escape(entry)}(?![\w$])", named(number), text)


def gallery() -> Iterator[dict[str, Any]]:
    """What the variants of the gallery launch at their first small sizes; their tests say that all are right."""
    for name in kernels.names():
        entry = kernels.entry(name)
        for variant, size in product(entry.variants, entry.small[:1]):
            try:
                launches = entry.launches(variant, entry.arrays(Host(7), **size))
            except UnsuitedError:
                continue
            for launch in launches:
                options = LaunchOptions(launch.grid, launch.block, shared=launch.shared, cluster=launch.cluster)
                yield {
                    "test": f"{GALLERY}[{name}-{variant}]",
                    "text": format(launch.module),
                    "entry": launch.function.name,
                    **{one: getattr(options, one) for one in SIZES},
                    "args": write_arguments(launch.args),
                    "emulator": [],
                }


def write_arguments(args: Sequence[Any]) -> dict[str, Any]:
    """Arguments as JSON: arrays apart, each once, and where they are."""
    arrays: list[np.ndarray] = []

    def write(value: Any) -> Any:
        if isinstance(value, TensorMap):
            return {"map": [write(getattr(value, one.name)) for one in fields(value)]}
        if isinstance(value, np.ndarray):
            number = next((at for at, array in enumerate(arrays) if array is value), len(arrays))
            arrays.extend([value] if number == len(arrays) else [])
            return {"array": number}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, dict):
            return {"dict": [[key, write(one)] for key, one in value.items()]}
        if isinstance(value, (tuple, list)):
            return {"tuple": [write(one) for one in value]}
        return value.item() if hasattr(value, "item") else value

    values = [write(value) for value in args]
    return {"arrays": [write_array(array) for array in arrays], "values": values}


def write_array(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON; a type that NumPy has not itself as its bits."""
    bits = array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")
    return {
        "type": bits.dtype.str,
        "shape": array.shape,
        "data": base64.b64encode(zlib.compress(array.tobytes())).decode(),
    }


def read_arguments(written: dict[str, Any]) -> list[Any]:
    """The arguments again."""
    arrays = [
        np.frombuffer(bytearray(zlib.decompress(base64.b64decode(one["data"]))), one["type"]).reshape(one["shape"])
        for one in written["arrays"]
    ]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, inner),) = value.items()
        if kind == "map":
            return TensorMap(*map(read, inner))
        if kind == "dict":
            return {key: read(one) for key, one in inner}
        if kind == "tuple":
            return tuple(map(read, inner))
        return arrays[inner] if kind == "array" else bytes.fromhex(inner)

    return [read(value) for value in written["values"]]


def named(number: int) -> str:
    """What a kernel is called, so that a report says which it is about."""
    return f"case_{number}_k"


def commit() -> str:
    """The commit that is checked out."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=True)
    return asked.stdout.strip()
