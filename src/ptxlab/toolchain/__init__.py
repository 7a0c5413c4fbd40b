"""ptxas, nvdisasm and NVRTC: text and bytes in; bytes, text and diagnostics out."""

from ptxlab.toolchain.judgement import Verdict, accepted, judge, judge_many
from ptxlab.toolchain.tools import Tool, find, find_assembler

__all__ = ["Tool", "Verdict", "accepted", "find", "find_assembler", "judge", "judge_many"]
