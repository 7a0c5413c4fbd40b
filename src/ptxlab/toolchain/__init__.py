"""ptxas, nvdisasm and NVRTC: text and bytes in; bytes, text and diagnostics out."""

from ptxlab.isa.occupancy import ASSUMED_THREADS, Occupancy, block_threads, occupancy
from ptxlab.toolchain.advisories import ADVISORIES, Advisory
from ptxlab.toolchain.assembly import Assembly, assemble
from ptxlab.toolchain.compilation import Compilation, compile_cuda, cuda, trace
from ptxlab.toolchain.disassembly import Control, SassFunction, SassInstruction, disassemble
from ptxlab.toolchain.lowering import Listing, Lowering, Row, lower_instructions, side_by_side
from ptxlab.toolchain.oracle import Verdict, accepted, judge, judge_many
from ptxlab.toolchain.resources import Resources
from ptxlab.toolchain.tools import Tool, find, find_assembler

__all__ = [
    "ADVISORIES",
    "ASSUMED_THREADS",
    "Advisory",
    "Assembly",
    "Compilation",
    "Control",
    "Listing",
    "Lowering",
    "Occupancy",
    "Resources",
    "Row",
    "SassFunction",
    "SassInstruction",
    "Tool",
    "Verdict",
    "accepted",
    "assemble",
    "block_threads",
    "compile_cuda",
    "cuda",
    "disassemble",
    "find",
    "find_assembler",
    "judge",
    "judge_many",
    "lower_instructions",
    "occupancy",
    "side_by_side",
    "trace",
]
