"""Words that the messages of several rules share: operands by name, near misses, and the nearest legal forms."""

from collections.abc import Iterable
from difflib import get_close_matches

from ptxlab import ir
from ptxlab.isa import Opcode
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms_of


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant."""
    found = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return found[0] if found else None


def nearest_forms(opcode: Opcode, most: int = 3) -> list[Form]:
    """The forms of the instruction that share most with its modifiers."""
    written = opcode.text.split(".")

    def distance(form: Form) -> tuple[int, int]:
        known = {value for slot in form.slots for value in slot.values} | set(form.name)
        missing = sum(not slot.optional and not set(slot.values) & set(written) for slot in form.slots)
        begun = sum(a == b for a, b in zip(form.name, written, strict=False))
        return sum(part not in known for part in written) + missing, -begun

    return sorted(forms_of(opcode.mnemonic), key=distance)[:most]


def described(operand: ir.Operand) -> str:
    """An operand in a message: "the `.f32` register `%f1`"."""
    match operand:
        case ir.Register():
            return f"the `.{operand.type.name}` register `{operand.name}`"
        case ir.VectorElement(register=ir.Register()):
            return f"an element of the vector register `{operand.register.name}`"
        case ir.Immediate():
            return "a floating-point constant" if operand.is_float else "an integer constant"
        case ir.Address():
            return "an address"
        case ir.Element():
            return f"an element of `{operand.base.name}`"
        case ir.Vector():
            return "a vector"
        case ir.SpecialRegister():
            return f"the special register `{operand.name}`"
        case ir.VariableReference():
            return f"the variable `{operand.name}`"
        case ir.FunctionReference():
            return f"the function `{operand.name}`"
        case ir.LabelReference():
            return f"the label `{operand.name}`"
        case ir.Sink():
            return "the sink `_`"
        case ir.Pair():
            return "a pair `p|q`"
        case ir.Negated():
            return "a negated predicate"
    return "not what belongs there"
