"""ptxas, nvdisasm and NVRTC: text and bytes in; bytes, text and diagnostics out."""

from ptxlab.isa.occupancy import ASSUMED_THREADS, Occupancy, block_threads, occupancy
from ptxlab.toolchain.advisories import ADVISORIES, Advisory
from ptxlab.toolchain.assembly import Assembly, assemble
from ptxlab.toolchain.compilation import Compilation, compile_cuda, cuda, trace
from ptxlab.toolchain.disassembly import Control, SassFunction, SassInstruction, disassemble
from ptxlab.toolchain.lowering import Listing, LoweredLine, Lowering, beside_lines, lower_instructions, side_by_side
from ptxlab.toolchain.objects import EmbeddedProgram, is_object, parts_of
from ptxlab.toolchain.oracle import PtxasMessage, accepted, judge, judge_many
from ptxlab.toolchain.resources import Resources
from ptxlab.toolchain.tools import Tool, find, find_assembler

__all__ = [
    "ADVISORIES",
    "ASSUMED_THREADS",
    "Advisory",
    "Assembly",
    "Compilation",
    "Control",
    "EmbeddedProgram",
    "Listing",
    "LoweredLine",
    "Lowering",
    "Occupancy",
    "PtxasMessage",
    "Resources",
    "SassFunction",
    "SassInstruction",
    "Tool",
    "accepted",
    "assemble",
    "beside_lines",
    "block_threads",
    "compile_cuda",
    "cuda",
    "disassemble",
    "find",
    "find_assembler",
    "is_object",
    "judge",
    "judge_many",
    "lower_instructions",
    "occupancy",
    "parts_of",
    "side_by_side",
    "trace",
]
