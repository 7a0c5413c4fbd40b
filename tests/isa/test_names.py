"""What instructions and special registers are and do is in the table: no other code asks for names.

But for `kernels` and `schedule`, which write instructions.
"""

from pathlib import Path

import pytest

import ptxlab
from tests.isa.name_tests import File, scan

ROOT = Path(ptxlab.__file__).parent

# Sources that must know names: why.
EXEMPT = {
    "emulate/translate/special.py": "gives each special register its value",
    "emulate/translate/lane_shapes.py": "reads instructions of LLVM, one of which is called `shl`, too",
    "equal/reference.py": "knows functions of NumPy and torch by their names, of which one is `rsqrt`",
    "equal/torch_functions.py": "the same",
    "prove/terms/terms.py": "gives each special register its symbol",
    "prove/questions/intervals.py": "says which of these symbols two threads share",
    "litmus/instructions.py": "reads the language of litmus tests, which has names of its own: `tld`, `suatom`, `bne`",
}


def test_no_code_asks_for_an_instruction_by_its_name() -> None:
    found = scan(ROOT, skipped=("isa", "kernels", "schedule"))
    assert [str(finding) for finding in found if finding.path not in EXEMPT] == []
    assert {finding.path for finding in found} == set(EXEMPT), "an exemption that is not needed"


def names_in(source: str) -> list[str]:
    found = File("module.py", source, {})
    return [name for finding in found.findings() for name in finding.names]


@pytest.mark.parametrize(
    "source",
    [
        'instruction.opcode.mnemonic == "bar"',
        '"bar" != opcode.mnemonic',
        'instruction.opcode.mnemonic in ("add", "sub")',
        'MOVES = frozenset("mov cvta".split())\nmnemonic in MOVES',
        'name = instruction.opcode.mnemonic\nif name == "call": pass',
        'kind, *rest = opcode.modifiers\nkind == "commit"',
        'any(word == "alloc" for word in instruction.opcode.modifiers)',
        'match opcode.mnemonic:\n    case "vote" | "match": pass',
        'match words:\n    case ["cp", "async", *rest]: pass\nwords = opcode.text.split(".")',
        'text.startswith("tcgen05.ld")',
        'opcode.text.startswith(("wmma.", "mma."))',
        '{"ldmatrix": 1}',
        'facts.by_mnemonic.get("trap")',
        'facts.by_mnemonic["fence"]',
        'facts.named("wgmma.fence")',
        'match.form.name[:2] == ("cp", "async")',
        'rest[0] == "commit_group"',
        'instruction.opcode == opcode("membar.cta")',
        'TABLE = {"add": 1}\nTABLE[opcode.mnemonic]',
        'operand.name == "%tid"',
        'match operand:\n    case ir.SpecialRegister(name="%laneid"): pass',
        'MASKS = ("%lanemask_eq", "%lanemask_lt")\nname in MASKS',
        'operand.name.startswith("%reserved_smem")',
        'VALUES = {"%tid.x": 0}\nVALUES.get(name)',
    ],
)
def test_what_asks_for_a_name_is_found(source: str) -> None:
    assert names_in(source)


@pytest.mark.parametrize(
    "source",
    [
        'operation == "add"',
        'step.unit == "mbarrier"',
        'effects.does("wgmma", "commit")',
        'effects.barrier == "cluster"',
        'access.kind == "store"',
        'candidate.modifiers.op == "add"',
        '"aligned" in opcode.modifiers',
        'error("bad-barrier", "`mbarrier.init` in one thread")',
        'opcode("mov.b32")',
        '[f"bar.sync {number};"]',
        'register.name.startswith("%r")',
        'ir.SpecialRegister("%cluster_ctarank", None)',
        "operand.kind is SpecialKind.CLOCK",
    ],
)
def test_what_asks_for_something_else_is_not(source: str) -> None:
    assert names_in(source) == []


def test_constants_are_followed_into_other_files() -> None:
    files: dict[str, File] = {}
    for path, source in {
        "check/sets.py": 'ENDS = ("ret", "exit")',
        "a.py": "from ptxlab.check.sets import ENDS\nopcode.mnemonic in ENDS",
        "b.py": "from ptxlab.check import sets\nopcode.mnemonic in sets.ENDS",
    }.items():
        files[path] = File(path, source, files)
    assert [finding.names for file in files.values() for finding in file.findings()] == [("ret", "exit")] * 2
