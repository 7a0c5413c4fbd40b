"""What `mutation.py` can do to one instruction: remove it, order less by it, or change a number of it.

An instruction whose operand is a register is changed in a scope of its own, which has a register for the other value.
"""

import re
from collections.abc import Callable, Iterator

Change = tuple[str, str]
"""The kind of a change, and the instruction instead; "" removes it."""

SWIZZLE, LEADING, STRIDE = 1 << 62, 1 << 16, 1 << 32  # bits of a shared-memory descriptor


class Text:
    """An instruction as text: its guard, opcode and operands."""

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"((?:@!?%?\w+\s+)?)([\w.:]+)(.*)", text, re.DOTALL)
        assert match, text
        self.guard, self.opcode, self.rest = match.groups()
        self.mnemonic, *self.modifiers = self.opcode.split(".")
        self.operands = _operands(self.rest)

    def with_opcode(self, opcode: str) -> str:
        return f"{self.guard}{opcode}{self.rest}"

    def with_operand(self, at: int, value: str) -> str:
        operands = [*self.operands]
        operands[at] = value
        return f"{self.guard}{self.opcode} {', '.join(operands)};"

    def with_value(self, at: int, operator: str, type: str, change: Callable[[int], int], other: int) -> str | None:
        """With another value of an operand: `change` of it if it is a number, else `operator` of it and `other`."""
        operand = self.operands[at]
        if re.fullmatch(r"-?(0x[\da-fA-F]+|\d+)U?", operand):
            value = change(int(operand.rstrip("U"), 0))
            return self.with_operand(at, str(value)) if value >= 0 else None
        changed = self.with_operand(at, "%changed")
        return f"{{ .reg .b{type[1:]} %changed; {operator}.{type} %changed, {operand}, {other}; {changed} }}"


def _operands(rest: str) -> list[str]:
    """The operands, those in braces and brackets whole."""
    found, depth, start = [], 0, 0
    text = rest.strip().rstrip(";").strip()
    for at, letter in enumerate(text):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()] if text else []


def changes(text: str) -> Iterator[Change]:
    """Each change to an instruction: what orders, what is counted, and where a matrix is."""
    one = Text(text)
    for prefixes, function in _CHANGES.items():
        if one.opcode.startswith(prefixes) and (one.opcode[len(_prefix(one.opcode, prefixes)) :] or ".")[0] in ".:_":
            yield from function(one)
            return


def is_access(text: str) -> bool:
    """Whether an instruction accesses memory, or starts an operation that does."""
    one = Text(text)
    if one.mnemonic in ("cp", "tcgen05", "wgmma"):
        return not re.search(r"\.(wait|commit|fence|mbarrier\.arrive)", one.opcode)
    return one.mnemonic in "atom clusterlaunchcontrol ld ldmatrix red st stmatrix".split()


def is_synchronization(text: str) -> bool:
    """Whether threads wait, arrive or signal by an instruction."""
    one = Text(text)
    if one.mnemonic in ("cp", "tcgen05", "wgmma"):
        return bool(re.search(r"\.(wait|commit|mbarrier\.arrive)", one.opcode))
    return one.mnemonic in ("bar", "barrier", "mbarrier")


def variables_of(text: str, instruction: str) -> set[str]:
    """The variables in shared memory whose addresses an instruction has, followed through registers."""
    declared: set[str] = set()
    for line in re.findall(r"^\s*(?:\.\w+\s+)*\.shared\b[^;]*;", text, re.MULTILINE):
        declared |= set(re.findall(r"([A-Za-z_$][\w$]*)(?:\[\d*\])?(?=[,;])", line))
    pending, seen, found = set(re.findall(r"%\w+|[A-Za-z_$][\w$]*", instruction)), set(), set()
    while pending:
        word = pending.pop()
        seen.add(word)
        if word in declared:
            found.add(word)
        if word.startswith("%"):
            written = rf"^\s*(?:@\S+\s+)?(?:mov|add|mad|mapa|cvta|or)\.\S+\s+{word},([^;]*);"
            for right in re.findall(written, text, re.MULTILINE):
                pending |= set(re.findall(r"%\w+|[A-Za-z_$][\w$]*", right)) - seen
    return found


def _prefix(opcode: str, prefixes: tuple[str, ...]) -> str:
    return max((prefix for prefix in prefixes if opcode.startswith(prefix)), key=len)


def _fence(one: Text) -> Iterator[Change]:
    yield "remove fence", ""
    wide = re.search(r"\.(gl|gpu|sys|cluster)\b", one.opcode)
    if wide and "proxy" not in one.modifiers and "mbarrier_init" not in one.modifiers:
        yield "narrow scope", one.with_opcode(one.opcode.replace(wide[0], ".cta"))


def _tensor_fence(one: Text) -> Iterator[Change]:
    yield "remove tensor fence", ""


def _wait(one: Text) -> Iterator[Change]:
    """A wait for groups, or for what a warp loads or stores in tensor memory."""
    yield "remove wait", ""
    if one.operands:
        yield "wait for one group less", one.with_operand(0, str(int(one.operands[0]) + 1))


def _commit(one: Text) -> Iterator[Change]:
    yield "remove commit", ""


def _arrive(one: Text) -> Iterator[Change]:
    yield "remove arrive", ""
    if "expect_tx" in one.modifiers:
        yield from _bytes(one, len(one.operands) - 1)
        plain = ", ".join(one.operands[:-1])
        yield "arrive without bytes", f"{one.guard}{one.opcode.replace('.expect_tx', '')} {plain};"
    yield from _scope(one)


def _scope(one: Text) -> Iterator[Change]:
    order = next((word for word in one.modifiers if word in ("acquire", "release")), None)
    if order:
        yield f"{order} to relaxed", one.with_opcode(one.opcode.replace(f".{order}", ".relaxed"))
    if order and "cluster" in one.modifiers:
        yield "narrow scope", one.with_opcode(one.opcode.replace(".cluster", ".cta", 1))


def _bytes(one: Text, at: int) -> Iterator[Change]:
    more = one.with_value(at, "add", "u32", lambda value: value + 16, 16)
    fewer = one.with_value(at, "sub", "u32", lambda value: value - 16, 16)
    yield from ((kind, text) for kind, text in (("more bytes", more), ("fewer bytes", fewer)) if text)


def _expect(one: Text) -> Iterator[Change]:
    yield "remove expect", ""
    yield from _bytes(one, len(one.operands) - 1)


def _init(one: Text) -> Iterator[Change]:
    yield "one arrival more", one.with_value(1, "add", "u32", lambda value: value + 1, 1) or ""
    if one.operands[1] != "1":
        fewer = one.with_value(1, "shr", "u32", lambda value: value // 2, 1)
        if fewer:
            yield "half the arrivals", fewer


def _mbarrier_wait(one: Text) -> Iterator[Change]:
    yield "remove wait", f"{one.guard}setp.eq.u32 {one.operands[0]}, 0, 0;"
    if "parity" in one.modifiers:
        yield "other parity", one.with_value(2, "xor", "b32", lambda value: value ^ 1, 1) or ""
    yield from _scope(one)


def _cluster_barrier(one: Text) -> Iterator[Change]:
    yield "remove cluster barrier", ""
    if "release" in one.modifiers or ("arrive" in one.modifiers and "relaxed" not in one.modifiers):
        opcode = one.opcode.replace(".release", "").replace(".arrive", ".arrive.relaxed")
        yield "release to relaxed", one.with_opcode(opcode)


def _barrier(one: Text) -> Iterator[Change]:
    """A block's barrier becomes nothing, or one of the warp; one that counts votes is removed with its result."""
    if one.modifiers[0] == "warp":
        yield "remove warp barrier", ""
    elif one.modifiers[0] == "cluster":
        yield from _cluster_barrier(one)
    else:
        yield "remove barrier", ""
        if "sync" in one.modifiers:
            yield "barrier of the warp only", f"{one.guard}bar.warp.sync 0xffffffff;"


def _access(one: Text) -> Iterator[Change]:
    """Less order, a smaller scope, or a weak access instead of a strong one."""

    def with_modifiers(changed: list[str]) -> str:
        return one.with_opcode(".".join([one.mnemonic, *changed]))

    modifiers = one.modifiers
    order = next((word for word in modifiers if word in ("acquire", "release", "acq_rel")), None)
    scope = next((word for word in modifiers if word in ("gpu", "sys", "cluster", "cta")), None)
    if order:
        yield f"{order} to relaxed", with_modifiers([word.replace(order, "relaxed") for word in modifiers])
    if "volatile" in modifiers:
        yield "volatile to weak", with_modifiers([word for word in modifiers if word != "volatile"])
    if "relaxed" in modifiers and one.mnemonic in ("ld", "st"):
        yield "relaxed to weak", with_modifiers([word for word in modifiers if word not in ("relaxed", scope)])
    if any(word.startswith("shared") for word in modifiers):
        return  # no other block accesses it: every scope is as good
    if scope not in (None, "cta"):
        yield "narrow scope", with_modifiers(["cta" if word == scope else word for word in modifiers])
    if scope is None and one.mnemonic in ("atom", "red"):
        yield "narrow scope", with_modifiers(["cta", *modifiers])  # without a scope it is `.gpu`


def _bulk_load(one: Text) -> Iterator[Change]:
    """A bulk copy that an mbarrier waits for is not started, or is one of fewer bytes."""
    if not any(word.startswith("mbarrier::") for word in one.modifiers):
        return
    yield "remove copy", ""
    if "tensor" not in one.modifiers:
        fewer = one.with_value(2, "sub", "u32", lambda value: value - 16, 16)
        if fewer:
            yield "copy fewer bytes", fewer


def _map_copy(one: Text) -> Iterator[Change]:
    """A tensor map that was changed in shared memory is not copied to where copies read it."""
    yield "remove copy", ""


def _matrix(one: Text) -> Iterator[Change]:
    """Fields of the descriptors of an MMA, or of a copy into tensor memory."""
    for at, operand in enumerate(one.operands):
        if not re.fullmatch(r"%\w+", operand) or at not in _descriptors(one):
            continue
        for name, bits in (("swizzle", SWIZZLE), ("leading offset", LEADING), ("stride offset", STRIDE)):
            changed = one.with_operand(at, "%changed")
            text = f"{{ .reg .b64 %changed; xor.b64 %changed, {operand}, {bits:#x}; {changed} }}"
            yield f"other {name} of operand {at}", text


def _descriptors(one: Text) -> tuple[int, ...]:
    """Where the shared-memory descriptors are."""
    if one.mnemonic == "wgmma":
        return (1, 2)  # A in registers is in braces
    return (1,) if one.modifiers[0] == "cp" else (1, 2)


_CHANGES: dict[tuple[str, ...], Callable[[Text], Iterator[Change]]] = {
    ("bar", "barrier"): _barrier,
    ("membar", "fence"): _fence,
    ("tcgen05.fence", "wgmma.fence"): _tensor_fence,
    ("cp.async.wait", "cp.async.bulk.wait", "wgmma.wait", "tcgen05.wait"): _wait,
    ("cp.async.bulk.commit_group", "wgmma.commit_group", "tcgen05.commit"): _commit,
    ("cp.async.mbarrier.arrive", "mbarrier.arrive"): _arrive,
    ("mbarrier.expect_tx",): _expect,
    ("mbarrier.init",): _init,
    ("mbarrier.test_wait", "mbarrier.try_wait"): _mbarrier_wait,
    ("cp.async.bulk",): _bulk_load,
    ("tensormap.cp_fenceproxy",): _map_copy,
    ("wgmma.mma_async", "tcgen05.mma", "tcgen05.cp"): _matrix,
    ("ld", "st", "atom", "red"): _access,
}
