"""Stack manipulation instructions (PTX ISA 9.7.17)."""

from .form import form

ALIGNMENT = f"imm({'|'.join(str(1 << power) for power in range(24))})"


@form("stacksave.type d", type="u32 u64", since="7.3 sm_52")
def stacksave() -> None:
    """Give the stack pointer."""


@form("stackrestore.type a", type="u32 u64", types={"a": "type reg"}, since="7.3 sm_52")
def stackrestore() -> None:
    """Set the stack pointer to what `stacksave` gave, which frees what was allocated since."""


@form("alloca.type d, size{, alignment}", type="u32 u64", types={"alignment": ALIGNMENT}, since="7.3 sm_52")
def alloca() -> None:
    """Allocate `size` bytes of local memory on the stack and give their address."""
