"""ptxas accepts the corpus; a sample of it each time, all of it with `PTXLAB_CORPUS=all`."""

import os
import zlib

import pytest

from . import Case, assemble, assemblers, files, is_too_new

CASES = files()


def sampled(case: Case) -> bool:
    """Tell whether a case is assembled in every run: everything written by hand and a tenth of the small rest."""
    if os.environ.get("PTXLAB_CORPUS") == "all" or case.producer == "hand":
        return True
    return case.path.stat().st_size < 30_000 and zlib.crc32(case.name.encode()) % 10 == 0


def test_names_are_unique():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_text_is_ptx_and_names_no_folder(case: Case):
    text = case.text()
    assert ".version" in text
    assert not [folder for folder in ("/tmp/", "/root/", "/home/", "/work/", "/opt/") if folder in text]


@pytest.mark.skipif(not assemblers(), reason="no ptxas on PATH, in PTXAS, or from the nvidia-cuda-nvcc wheel")
@pytest.mark.parametrize("case", [*filter(sampled, CASES)], ids=lambda case: case.name)
def test_ptxas_accepts(case: Case):
    for ptxas in assemblers():
        complaint = assemble(case.text(), case.target, case.assembler_flags, ptxas)
        if complaint is None or not is_too_new(complaint):
            break
    else:
        pytest.skip(f"every ptxas here is older than PTX {case.version[0]}.{case.version[1]}")
    assert complaint is None
