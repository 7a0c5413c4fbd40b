"""ptxas accepts the corpus and judges the snippets as written; a sample each time, all with `PTXLAB_CORPUS=all`."""

import os
import zlib

import pytest

from . import Case, Snippet, assemble, assemblers, files, is_too_new, snippets

CASES = files()
ALL = os.environ.get("PTXLAB_CORPUS") == "all"


def sampled(case: Case) -> bool:
    """Tell whether a case is assembled in every run: everything written by hand and a tenth of the small rest."""
    if ALL or case.producer == "hand":
        return True
    return case.path.stat().st_size < 30_000 and one_in(10, case.name)


def one_in(n: int, text: str) -> bool:
    """Choose one text in `n`, the same ones each time."""
    return zlib.crc32(text.encode()) % n == 0


needs_ptxas = pytest.mark.skipif(
    not assemblers(), reason="no ptxas on PATH, in PTXAS, or from the nvidia-cuda-nvcc wheel"
)


def test_names_are_unique():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_text_is_ptx_and_names_no_folder(case: Case):
    text = case.text()
    assert ".version" in text
    assert not [folder for folder in ("/tmp/", "/home/", "/opt/") if folder in text]


@pytest.mark.bulk(one_in=4)
@needs_ptxas
@pytest.mark.parametrize("case", [*filter(sampled, CASES)], ids=lambda case: case.name)
def test_ptxas_accepts(case: Case):
    for ptxas in assemblers():
        complaint = assemble(case.text(), case.target, case.assembler_flags, ptxas)
        if complaint is None or not is_too_new(complaint):
            break
    else:
        pytest.skip(f"every ptxas here is older than PTX {case.version[0]}.{case.version[1]}")
    assert complaint is None


@needs_ptxas
@pytest.mark.parametrize(
    "snippet",
    [s for s in snippets() if ALL or one_in(3, s.text)],
    ids=lambda snippet: snippet.text.splitlines()[3][:60],
)
def test_ptxas_judges_as_written(snippet: Snippet):
    complaint = assemble(snippet.text, snippet.target, (), assemblers()[0])
    assert (complaint is None) == snippet.accepted, complaint
