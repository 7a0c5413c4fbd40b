"""What saying something about registers changes in the machine code; `--evidence` writes evidence/register_use.json.

No GPU is needed, but a ptxas and an nvdisasm are.
"""

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.kernels import registers
from ptxlab.toolchain import assemble, disassemble, find, occupancy

ROOT = Path(__file__).resolve().parent.parent
TARGET = "sm_90a"


def use(directives: str) -> dict[str, Any]:
    """Registers, bytes spilled, instructions and warps of the kernel with these directives."""
    assembly = assemble(registers.text(directives), TARGET)
    assert assembly.cubin is not None
    (needed,) = assembly.resources
    (code,) = disassemble(assembly.cubin)
    assert needed.registers is not None
    held = occupancy(TARGET, registers.BLOCK, needed.registers, needed.shared)
    assert held is not None
    return {
        "registers": needed.registers,
        "spilled": needed.spill_stores,
        "instructions": sum(one.opcode != "NOP" for one in code.instructions),
        "warps": held.warps,
    }


def main() -> None:
    found = {name: use(directives) for name, directives in registers.DIRECTIVES.items()}
    for name, row in found.items():
        print(f"{name:18}", row)
    if "--evidence" in sys.argv:
        kept = {"date": date.today().isoformat(), "ptxas": find("ptxas").version, "target": TARGET, "use": found}
        path = ROOT / "evidence" / "register_use.json"
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
