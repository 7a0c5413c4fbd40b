"""A class name is one thing, or two; where it is more, `REASONS` says why."""

import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "ptxlab"
# Rooms with a language of their own: a kernel's folder is read alone, a litmus test has instructions and variables, and
# frameworks have classes by the names that XLA, Numba, Triton and torch ask for.
OWN_LANGUAGE = ("kernels/", "litmus/", "frameworks/")
REASONS = {
    "Access": "one thing, as the table declares it, as detectors keep it and as proofs compare it",
    "Array": "what each door calls an array among its arguments; `device.arrays` has the protocol of all of them",
    "Loop": "a loop: of basic blocks, of a schedule's tree, of a proof's terms",
    "TensorMemory": "the protocol of the table, what translates it, and what kernels in Python allocate",
    "Verdict": "the answer of `equal`, `prove` and `verify`",
}


def test_class_names_are_used_once_or_twice() -> None:
    places = defaultdict(set)
    for file in SOURCE.rglob("*.py"):
        name = file.relative_to(SOURCE).as_posix()
        if not name.startswith(OWN_LANGUAGE):
            for found in re.findall(r"^ *class ([A-Za-z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE):
                places[found].add(name)
    often = {name: sorted(files) for name, files in places.items() if len(files) > 2}
    assert {name: files for name, files in often.items() if name not in REASONS} == {}
    assert REASONS.keys() <= often.keys()
