"""Stack manipulation instructions (PTX ISA 9.7.17)."""

from ..form import Modifiers, form
from ..machine import Machine, Value

ALIGNMENT = f"imm({'|'.join(str(1 << power) for power in range(24))})"


@form("stacksave.type d", type="u32 u64", since="7.3 sm_52")
def stacksave(k: Machine, m: Modifiers) -> Value:
    """Give the stack pointer."""
    return k.stack.save(m.type)


@form("stackrestore.type a", type="u32 u64", types={"a": "type reg"}, since="7.3 sm_52")
def stackrestore(k: Machine, m: Modifiers, a: Value) -> None:
    """Set the stack pointer to what `stacksave` gave, which frees what was allocated since."""
    k.stack.restore(a)


@form("alloca.type d, size{, alignment}", type="u32 u64", types={"alignment": ALIGNMENT}, since="7.3 sm_52")
def alloca(k: Machine, m: Modifiers, size: Value, alignment: int | None) -> Value:
    """Allocate `size` bytes of local memory on the stack and give their address."""
    return k.stack.allocate(size, 8 if alignment is None else alignment, m.type)
