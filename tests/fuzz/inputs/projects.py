"""Tables `[tool.ptxlab]` of pyproject.toml: read or refused, and no option that could run something gets through."""

import random
import tempfile
from pathlib import Path

from ptxlab.project import Project, ProjectError
from tests.fuzz.inputs.mutation import change_bytes, change_text

OPTIONS = (
    "-Iinclude", "-I", "include", "-DN=5", "-D", "M", "-std=c++20", "--use_fast_math", "-ccbin", "./g++", "-Xcompiler",
    "-fplugin=x", "--run", "-o", "x.o", "-O2", "-diag-suppress=177", "--options-file", "-isystem", "--pre-include=x.h",
    "-maxrregcount=32", "x.cu", "-U", "-", "--", "@x", "-DX=`id`", "-DX=$(id)", "-Xptxas", "-v",
)  # fmt: skip
UNSAFE = ("-ccbin", "-Xcompiler", "--run", "-o", "--options-file", "-fplugin", "-Xptxas", "@")


def make(choose: random.Random) -> bytes:
    options = ", ".join(f'"{one}"' for one in choose.sample(OPTIONS, choose.randrange(6)))
    text = f'[project]\nname = "x"\n[tool.ptxlab]\ntarget = "sm_90a"\ncuda-options = [{options}]\n'
    for _ in range(choose.choice([0, 1, 2, 4])):
        text = change_text(text, choose)
    data = text.encode("utf-8", "replace")
    return change_bytes(data, choose) if choose.random() < 0.2 else data


def examine(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_bytes(data)
        try:
            found = Project.of(Path(folder) / "k.cu")
        except ProjectError as wrong:
            str(wrong)
            return
    given = [option.replace(folder, "") for option in found.options]
    unsafe = [one for one in given if one.startswith(UNSAFE) or "`" in one or "$" in one]
    assert not unsafe, unsafe
