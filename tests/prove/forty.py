"""Forty Triton kernels of others, chosen before any was proved: compiled from a folder of their sources, and proved.

    python -m tests.prove.forty build FOLDER PTX       (with a Python that has Triton)
    python -m tests.prove.forty prove PTX [--processes 16] [--output FILE] [NAME ...]

`forty.json` has the arguments of a launch of each, and what it shows of sizes, which is assumed. The sources are not
kept here. FOLDER has, by these names: `tut_*.py`, Triton's python/tutorials; `liger_*.py`, Liger-Kernel's
src/liger_kernel/ops; `unsloth_*.py`, unsloth/kernels; `fla_*.py`, flash-linear-attention's fla/modules, `fla_u_*.py`,
its fla/ops/utils; `vllm_awq.py`, `vllm_int8.py`, `vllm_bi.py`, `vllm_merge.py`, vLLM's awq_triton, int8_utils,
batch_invariant and triton_merge_attn_states. Of each source only the functions that Triton compiles are taken.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import re
import sys
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

TARGETS = {80: "sm_80", 90: "sm_90a"}
HEAD = """import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda.libdevice import rsqrt, tanh
exp, log = tl.exp, tl.log
class float8_info:
    min, max = -448.0, 448.0
"""


def kernels() -> dict[str, Any]:
    """What is said of each kernel, by its name."""
    found: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
    return found


def compiled_part(text: str) -> str:
    """The functions of a source that Triton compiles, and its constants, without what they are tuned by."""
    found = [HEAD]
    pending: list[ast.stmt] = list(ast.parse(text).body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.If):  # the last way is that of CUDA
            pending = [*node.orelse, *pending]
        elif isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list):
            node.decorator_list = [ast.parse("triton.jit", mode="eval").body]
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and "constexpr" in ast.unparse(node):
            found.append(ast.unparse(node))
    return "\n\n".join(found)


def build(folder: Path, output: Path) -> None:
    """Compile all kernels for both targets."""
    triton: Any = importlib.import_module("triton")
    source_type: Any = importlib.import_module("triton.compiler").ASTSource
    target_type: Any = importlib.import_module("triton.backends.compiler").GPUTarget
    output.mkdir(parents=True, exist_ok=True)
    for name, one in kernels().items():
        path = output / re.sub(r"\W", "_", one["source"].removesuffix(".py"))
        path = path.with_suffix(".py")
        path.write_text(compiled_part((folder / one["source"]).read_text()))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, name.partition(".")[2])
        constants = {argument: getattr(triton.language, value["dtype"]) if "dtype" in value else value["constant"]
                     for argument, value in one["arguments"].items() if isinstance(value, dict)}  # fmt: skip
        for number, target in TARGETS.items():
            signature, attributes = dict.fromkeys(constants, "constexpr"), {}
            for position, argument in enumerate(function.arg_names):
                if argument not in constants:
                    type, _, divisor = one["arguments"][argument].partition(":")
                    signature[argument] = type.replace("fp8e4nv", "fp8e5") if number == 80 else type
                    if divisor or type.startswith("*"):
                        attributes[(position,)] = [["tt.divisibility", 16]]
            ordered = {argument: signature[argument] for argument in function.arg_names}
            source = source_type(function, ordered, constants, attributes)
            made = triton.compile(source, target=target_type("cuda", number, 32), options=one["options"])
            (output / f"{name}.{target}.ptx").write_text(made.asm["ptx"])
            about = {"shared": made.metadata.shared, "params": [a for a in ordered if a not in constants]}
            (output / f"{name}.{target}.json").write_text(json.dumps(about))


def judge(given: tuple[Path, str, str, float]) -> dict[str, Any]:
    """What is proved of a kernel."""
    import ptxlab

    folder, name, target, timeout = given
    path = folder / f"{name}.{target}.ptx"
    about = json.loads(path.with_suffix(".json").read_text())
    module = ptxlab.parse(path.read_text(), path.name)
    (entry,) = module.entries
    kernel = module[entry]
    titles = {own: kernel.parameters[number].title for number, own in enumerate(about["params"])}
    names = re.compile(rf"(?<![.])\b({'|'.join(titles)})\b")
    assume = [names.sub(lambda found: titles[found[0]], one) for one in kernels()[name]["assume"]]
    start = process_time()
    found = ptxlab.prove(kernel, assume=assume, shared=about["shared"], replays=False, timeout=timeout)
    return {"kernel": name, "target": target, "level": found.level, "seconds": round(process_time() - start, 1),
            "gaps": [str(one) for one in found.gaps[:3]]}  # fmt: skip


def main() -> None:
    """Build, or judge all and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["build", "prove"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.what == "build":
        build(given.folder, Path(*given.names))
        return
    from ptxlab.measure.machine import commit
    from tests.prove.pool import results

    chosen = [name for name in kernels() if not given.names or any(part in name for part in given.names)]
    asked = [(given.folder, name, target, given.timeout) for name in chosen for target in TARGETS.values()]
    found = []
    for row in results(judge, asked, given.processes, given.seconds):
        print(json.dumps(row), flush=True)
        found.append(row)
    found.sort(key=lambda row: (row["kernel"], row["target"]))
    both = Counter(row["kernel"] for row in found if row["level"] == "proved")
    counts = {"files": Counter(row["level"] for row in found), "proved for both": sum(n == 2 for n in both.values())}
    print(json.dumps(counts, indent=1))
    if given.output is not None:
        given.output.write_text(json.dumps({"commit": commit(), **counts, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
