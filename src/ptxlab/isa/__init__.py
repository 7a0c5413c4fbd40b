"""The instruction set as data: types, targets, and every instruction with its forms, availability and semantics."""

from .jump import Jump
from .opcode import Candidate, Match, Mismatch, Opcode, opcode
from .operation import Operation
from .types import Type, type_named

__all__ = ["Candidate", "Jump", "Match", "Mismatch", "Opcode", "Operation", "Type", "opcode", "type_named"]
