"""How the results of an instruction are known to be those of a GPU.

A form that computes values, and that an H200 has, was compared with one, bit for bit (evidence/agreement_gpu.json; a
test holds this file against it). What an H200 does not have is modelled after the manual and public sources. On other
GPUs, tensor cores add up as MMA-Sim found (arXiv 2511.10909), and approximate instructions give an H200's results.
What moves data or orders it has the results that the manual defines.
"""

from enum import StrEnum

from .form import Form
from .opcode import Candidate
from .targets import Since, target_named

MEASURED_ON = "H200"
_TARGET = target_named("sm_90a")
_NEWEST = (9, 0)  # version of PTX whose instructions were compared

# Chapters whose forms compute values, or permute them: what was compared.
_COMPUTING = frozenset(
    "integer extended_precision floating_point half mixed_precision compare logic move convert video warp".split()
)
_TENSOR_CORES = frozenset("matrix matrix_sparse matrix_scaled matrix_wmma wgmma".split())
_TEXTURES = frozenset(("texture", "surface"))  # compared by `tests/gpu/test_textures.py`
_EXACT = frozenset("s32 f64".split())  # results of tensor cores that no order of additions changes


class Evidence(StrEnum):
    """What is known of results."""

    MEASURED = "measured"
    DEFINED = "defined"
    MODELLED = "modelled"
    APPROXIMATE = "approximate"


def evidence_of(candidate: Candidate, architecture: str) -> Evidence:
    """How the results of a form with its modifiers are known to be those of a GPU."""
    form, m = candidate.form, candidate.modifiers
    if not all(_is_on_measured(needed) for _, needed in form.requirements(candidate.chosen)):
        return Evidence.MODELLED
    if form.chapter == "multimem":
        return Evidence.MODELLED  # no machine with several GPUs was there to ask
    if form.chapter in _TEXTURES:
        is_exact = _is_measured(architecture) and not any(operand.name == "dx" for operand in form.operands)
        return Evidence.MEASURED if is_exact else Evidence.APPROXIMATE
    if form.chapter in _TENSOR_CORES and _multiplies(form):
        is_modelled = not _is_measured(architecture) and m.dtype not in _EXACT
        return Evidence.MODELLED if is_modelled else Evidence.MEASURED
    if form.chapter not in _COMPUTING or any(operand.is_address for operand in form.operands):
        return Evidence.DEFINED
    if (form.bounds or m.approx) and not _is_measured(architecture):
        return Evidence.APPROXIMATE
    needed_versions = (min(version for version, _ in s.alternatives) for _, s in form.requirements(candidate.chosen))
    return Evidence.DEFINED if max(needed_versions) > _NEWEST else Evidence.MEASURED


def _is_on_measured(needed: Since) -> bool:
    return any(_TARGET.has(chip) for _, chip in needed.alternatives)


def _is_measured(architecture: str) -> bool:
    return target_named(architecture).number == _TARGET.number


def _multiplies(form: Form) -> bool:
    return any(operand.name in ("b", "b_desc") for operand in form.operands)
