"""Operands in words, as the messages of several rules have them."""

from ptxlab import ir
from ptxlab.isa.special_registers import special_register


def described(operand: ir.Operand) -> str:
    """An operand in a message: "the `.f32` register `%f1`"."""
    match operand:
        case ir.Register():
            return f"the `.{operand.type.name}` register `{operand.name}`"
        case ir.VectorElement(register=ir.Register(), position=None):
            return f"`{operand.register.name}.{operand.element}`"
        case ir.Selection(register=ir.Register()):
            return f"`{operand.register.name}.{operand.selector}`"
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
            known = special_register(operand.name)
            name = operand.name if operand.component is None else f"{operand.name}.{operand.component}"
            has_type = known is not None and (known.vector > 0) == (operand.component is not None)
            return f"the special register `{name}`" + (f", a `.{known.type.name}`" if known and has_type else "")
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
