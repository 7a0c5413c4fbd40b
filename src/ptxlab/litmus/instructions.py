"""One instruction of a litmus test: its text to a value.

The spelling is that of the public tests (`st.relaxed.gpu x, 1`, `sust.weak s, 1`, `bne r0, 1, LC00`), and of PTX where
these have none: `mbarrier.arrive.release.cta b`, `barrier.cluster.wait`, `fence.acquire.gpu`.
"""

from __future__ import annotations

from typing import NoReturn

from ptxlab.litmus.program import (
    GENERIC,
    SCOPES,
    Atomic,
    Barrier,
    Branch,
    ClusterBarrier,
    Compute,
    Fence,
    Instruction,
    Label,
    Load,
    Move,
    Operand,
    ProxyFence,
    Store,
    Variable,
)
from ptxlab.litmus.tokens import Cursor, Token, refuse
from ptxlab.report import Span
from ptxlab.report.nearest import nearest

LOADS = {"ld": GENERIC, "tld": "texture", "suld": "surface", "cold": "constant"}
STORES = {"st": GENERIC, "sust": "surface"}
ATOMICS = {"atom": GENERIC, "suatom": "surface", "red": GENERIC, "sured": "surface"}
PROXIES = (GENERIC, "texture", "surface", "constant")
ORDERS = {
    "ld": ("weak", "relaxed", "acquire", "volatile"),
    "st": ("weak", "relaxed", "release", "volatile"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "fence": ("acquire", "release", "acq_rel", "sc"),
}
OPERATIONS = ("add", "sub", "and", "or", "xor", "min", "max", "exch", "cas")
ARITHMETIC = ("add", "sub", "mul", "div", "and", "or", "xor")
COMPARISONS = {"beq": "==", "bne": "!=", "blt": "<", "ble": "<=", "bgt": ">", "bge": ">="}
MEMBARS = {"membar.cta": "cta", "membar.gl": "gpu", "membar.sys": "sys"}
BARRIERS = ("bar", "barrier")
OTHERS = ("fence", *BARRIERS, "mbarrier", "goto")


class InstructionReader:
    """Reads the instructions of one thread."""

    def __init__(self, cursor: Cursor, variables: dict[str, Variable]) -> None:
        self._cursor, self._variables = cursor, variables

    def read(self) -> Instruction:
        """The instruction that comes next."""
        opcode = self._cursor.word("an instruction")
        if self._cursor.accept(":"):
            return Label(opcode.span, opcode.text)
        parts = opcode.text.split(".")
        family = parts[0]
        if opcode.text == "mov" or (family in LOADS and len(parts) == 1):
            return Move(opcode.span, self._register(), self._operand())
        if family in LOADS:
            return self._load(opcode, parts[1:], LOADS[family])
        if family in STORES:
            return self._store(opcode, parts[1:], STORES[family])
        if family in ATOMICS:
            return self._atomic(opcode, parts[1:], ATOMICS[family], family.endswith("red"))
        if family == "fence" or opcode.text in MEMBARS:
            return self._fence(opcode, parts[1:])
        if family in BARRIERS:
            return self._barrier(opcode, parts[1:])
        if family == "mbarrier":
            return self._mbarrier(opcode, parts[1:])
        if opcode.text in ARITHMETIC:
            return Compute(opcode.span, self._register(), opcode.text, (self._operand(), self._operand()))
        if opcode.text in COMPARISONS:
            operands = (self._first_operand(), self._operand())
            return Branch(opcode.span, self._label(","), COMPARISONS[opcode.text], operands)
        if opcode.text in ("goto", "bra"):
            return Branch(opcode.span, self._label())
        return self._unknown(opcode, family)

    def _unknown(self, opcode: Token, family: str) -> NoReturn:
        known = (*LOADS, *STORES, *ATOMICS, *ARITHMETIC, "mov", *COMPARISONS, *OTHERS)
        close = nearest(family, known)
        refuse(
            opcode.span,
            f"`{opcode.text}` is not an instruction of litmus tests",
            help=f"did you mean `{close}`?" if close else f"the instructions are {', '.join(known)}",
        )

    def _load(self, opcode: Token, parts: list[str], proxy: str) -> Load:
        order, scope = self._ordering(opcode, parts, ORDERS["ld"])
        register = self._register()
        self._cursor.expect(",")
        return Load(opcode.span, register, self._variable(), order, scope, proxy)

    def _store(self, opcode: Token, parts: list[str], proxy: str) -> Store:
        order, scope = self._ordering(opcode, parts, ORDERS["st"])
        return Store(opcode.span, self._variable(), self._operand(), order, scope, proxy)

    def _atomic(self, opcode: Token, parts: list[str], proxy: str, reduces: bool) -> Atomic:
        operation = parts[-1] if parts else ""
        allowed = OPERATIONS[:-2] if reduces else OPERATIONS
        if operation not in allowed:
            refuse(opcode.span, f"`{opcode.text}` names no operation", help=f"the operations are {', '.join(allowed)}")
        order, scope = self._ordering(opcode, parts[:-1], ORDERS["atom"])
        assert scope is not None
        register = None
        if not reduces:
            register = self._register()
            self._cursor.expect(",")
        variable = self._variable()
        operands = tuple(self._operand() for _ in range(2 if operation == "cas" else 1))
        return Atomic(opcode.span, register, variable, operation, operands, order, scope, proxy)

    def _fence(self, opcode: Token, parts: list[str]) -> Fence | ProxyFence:
        if opcode.text in MEMBARS:
            return Fence(opcode.span, "sc", MEMBARS[opcode.text])
        if parts[:1] == ["proxy"]:
            if len(parts) != 2 or parts[1] not in (*PROXIES, "alias"):
                known = ", ".join(f"fence.proxy.{proxy}" for proxy in ("alias", *PROXIES[1:]))
                refuse(opcode.span, f"there is no `{opcode.text}` in litmus tests", help=f"expected one of {known}")
            return ProxyFence(opcode.span, parts[1])
        order, scope = self._ordering(opcode, parts if len(parts) > 1 else ["acq_rel", *parts], ORDERS["fence"])
        assert scope is not None
        return Fence(opcode.span, order, scope)

    def _barrier(self, opcode: Token, parts: list[str]) -> Barrier | ClusterBarrier:
        if parts[:1] == ["cluster"]:
            kind, order = parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else "acq_rel"
            if kind not in ("arrive", "wait") or order not in ("acq_rel", "release", "acquire", "relaxed"):
                refuse(opcode.span, f"there is no `{opcode.text}`", help="there are barrier.cluster.arrive and .wait")
            return ClusterBarrier(opcode.span, kind == "wait", order)
        public = opcode.text.startswith("bar.cta.")  # its first operand only names the instance, if there are more
        mode = parts[-1] if parts else ""
        if mode not in ("sync", "arrive") or parts[:-1] not in ([], ["cta"]):
            refuse(opcode.span, f"there is no `{opcode.text}` in litmus tests", help="there are .sync and .arrive")
        operands = [self._first_operand()]
        while self._cursor.accept(","):
            operands.append(self._first_operand())
        if public and len(operands) > 1:
            operands = operands[1:]
        if len(operands) > 2:
            refuse(opcode.span, f"`{opcode.text}` has a barrier and a count of threads, no more")
        return Barrier(opcode.span, mode == "arrive", operands[0], operands[1] if len(operands) > 1 else None)

    def _mbarrier(self, opcode: Token, parts: list[str]) -> Atomic | Load:
        kind = parts[0] if parts else ""
        if kind not in ("arrive", "test_wait"):
            help = "there are .arrive and .test_wait"
            refuse(opcode.span, f"there is no `{opcode.text}` in litmus tests", help=help)
        allowed = ("relaxed", "release") if kind == "arrive" else ("relaxed", "acquire")
        default = [allowed[1], "cta"]
        order, scope = self._ordering(opcode, parts[1:] or default, allowed)
        assert scope is not None
        if kind == "arrive":
            return Atomic(opcode.span, None, self._mbarrier_name(), "add", (1,), order, scope)
        register = self._register()
        self._cursor.expect(",")
        return Load(opcode.span, register, self._mbarrier_name(), order, scope)

    def _mbarrier_name(self) -> str:
        token = self._cursor.next
        name = self._variable()
        if self._variables[name].expected is None:
            refuse(token.span, f"`{name}` is not an mbarrier", help=f"declare it so: {name} @ mbarrier 1;")
        return name

    def _ordering(self, opcode: Token, parts: list[str], allowed: tuple[str, ...]) -> tuple[str, str | None]:
        """Order and scope, as the modifiers say; `volatile` is relaxed at system scope (PTX ISA 8.4.2)."""
        order = parts[0] if parts else ""
        if order not in allowed:
            help = f"after `{opcode.text.split('.')[0]}` comes one of {', '.join(allowed)}"
            refuse(opcode.span, f"`{opcode.text}` has no order that it can have", help=help)
        if order == "volatile":
            return "relaxed", "sys"
        scopes = parts[1:]
        if order == "weak":
            if scopes:
                refuse(opcode.span, f"`{opcode.text}`: a weak operation has no scope")
            return order, None
        if len(scopes) != 1 or scopes[0] not in SCOPES:
            refuse(opcode.span, f"`{opcode.text}` needs one scope", help=f"the scopes are {', '.join(SCOPES)}")
        return order, scopes[0]

    def _register(self) -> str:
        return self._cursor.word("a register").text

    def _label(self, before: str = "") -> str:
        if before:
            self._cursor.expect(before)
        return self._cursor.word("a label").text

    def _variable(self) -> str:
        bracket = self._cursor.accept("[")
        token = self._cursor.word("a variable")
        if bracket:
            self._cursor.expect("]")
        return self._declared(token.text, token.span)

    def _declared(self, name: str, span: Span) -> str:
        if name not in self._variables:  # one that is not declared is 0 at first, as in the public tests
            self._variables[name] = Variable(name, name, name)
        return name

    def _operand(self) -> Operand:
        self._cursor.expect(",")
        return self._first_operand()

    def _first_operand(self) -> Operand:
        if self._cursor.next.kind == "word":
            return self._cursor.take().text
        return self._cursor.number("a register or a number")
