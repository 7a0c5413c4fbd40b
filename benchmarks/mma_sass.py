"""What each kind of `mma.sync` becomes on five targets; `--evidence` writes evidence/mma_sass.json.

No GPU is needed, but a ptxas and an nvdisasm are.
"""

import json
import sys
from datetime import date
from itertools import groupby
from pathlib import Path

from ptxlab.kernels import mma_variants
from ptxlab.toolchain import find, lower_instructions
from ptxlab.toolchain.disassembly import SassInstruction

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"]
ADDRESSES = ("UIADD3", "IADD3", "IMAD", "UMOV")


def counted(instructions: tuple[SassInstruction, ...]) -> list[str]:
    """The opcodes in their order, those that repeat with how often: `4 F2FP.F16.E4M3.UNPACK_B`.

    ptxas books some arithmetic of addresses on the line of the multiplication; that is left out.
    """
    names = [one.opcode for one in instructions if one.opcode != "NOP" and not one.opcode.startswith(ADDRESSES)]
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return [name if count == 1 else f"{count} {name}" for name, count in runs]


def main() -> None:
    kinds = []
    for type, accumulator in mma_variants.PAIRS:
        spelling = mma_variants.spell(type, accumulator)
        text = str(mma_variants.multiply.specialize(SPELLING=spelling))
        line = next(number for number, line in enumerate(text.split("\n"), 1) if "mma.sync" in line)
        found = lower_instructions(text, TARGETS, "mma.ptx")
        sass = {one.target: counted(one.sass[line]) if one.sass else None for one in found}
        kinds.append({"instruction": f"mma.sync.aligned.{spelling}", "sass": sass})
        print(kinds[-1]["instruction"])
        for target, becomes in sass.items():
            print(f"    {target:8} {', '.join(becomes) if becomes else 'refused'}")
    if "--evidence" in sys.argv:
        tools = {name: find(name).version for name in ("ptxas", "nvdisasm")}
        kept = {"date": date.today().isoformat(), **tools, "kinds": kinds}
        path = ROOT / "evidence" / "mma_sass.json"
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
