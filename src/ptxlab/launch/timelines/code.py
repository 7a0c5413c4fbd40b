"""A kernel that records its own timeline: its text with instructions before and after those that are events.

Lane 0 of each warp records, if it executes the event: it reads the clock, and stores 16 bytes. What is added is on the
lines that there are, so lines stay what they were. Three parameters come after those of the kernel: the memory, how
many blocks have some there, and how many records a warp has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxlab import ir
from ptxlab.ir.spans import without_comments
from ptxlab.launch.timelines.events import TimedEvent
from ptxlab.timelines.layout import HEADER, RECORD

OWN = 2  # records that each warp has for its start and its end, by both clocks
UPPER_HALF = 0x5410  # of `prmt`: the second operand goes there

_START = """
.reg .pred {on}, {g}, {r};
.reg .b32 {first}, {count}, {t}, {lo}, {hi}, {x}, {y};
.reg .b64 {a}, {now};
mov.u32 {x}, %ctaid.z; mov.u32 {y}, %nctaid.y; mov.u32 {t}, %ctaid.y; mad.lo.u32 {x}, {x}, {y}, {t};
mov.u32 {y}, %nctaid.x; mov.u32 {t}, %ctaid.x; mad.lo.u32 {x}, {x}, {y}, {t};
ld.param.u32 {y}, [{blocks}]; setp.lt.u32 {on}, {x}, {y};
mov.u32 {t}, %laneid; setp.eq.and.u32 {on}, {t}, 0, {on};
mov.u32 {lo}, %ntid.x; mov.u32 {hi}, %ntid.y; mul.lo.u32 {first}, {lo}, {hi};
mov.u32 {y}, %ntid.z; mul.lo.u32 {first}, {first}, {y}; add.u32 {first}, {first}, 31; shr.u32 {first}, {first}, 5;
mov.u32 {t}, %tid.z; mov.u32 {y}, %tid.y; mad.lo.u32 {t}, {t}, {hi}, {y};
mov.u32 {y}, %tid.x; mad.lo.u32 {t}, {t}, {lo}, {y}; shr.u32 {t}, {t}, 5;
mad.lo.u32 {x}, {x}, {first}, {t};
ld.param.u32 {y}, [{spans}]; add.u32 {y}, {y}, {header}; mul.lo.u32 {x}, {x}, {y};
ld.param.u64 {a}, [{records}]; mad.wide.u32 {a}, {x}, {record}, {a};
mov.u64 {now}, %clock64; mov.b64 {{{lo}, {hi}}}, {now}; mov.u32 {t}, %smid; mov.u32 {count}, {own};
@{on} st.global.v4.b32 [{a}], {{{lo}, {hi}, {count}, {t}}};
mov.u32 {t}, %nctaid.x; mov.u32 {y}, %nctaid.y; mul.lo.u32 {t}, {t}, {y}; mov.u32 {y}, %nctaid.z;
mul.lo.u32 {t}, {t}, {y}; mov.u32 {y}, %nsmid; mov.u32 {lo}, 0;
@{on} st.global.v4.b32 [{a}+16], {{{y}, {t}, {first}, {lo}}};
mov.u64 {now}, %globaltimer; @{on} st.global.b64 [{a}+48], {now};
add.u32 {first}, {x}, {header};
"""
_END = """
ld.param.u64 {a}, [{records}]; mad.wide.u32 {a}, {first}, {record}, {a};
mov.u64 {now}, %clock64; @{g} st.global.b64 [{a}+8], {now};
mov.u64 {now}, %globaltimer; @{g} st.global.b64 [{a}+24], {now};
@{g} st.global.b32 [{a}+-24], {count};
"""
_RECORD = """
mov.u64 {now}, %clock64; mov.b64 {{{lo}, {hi}}}, {now};
ld.param.u32 {x}, [{spans}]; setp.lt.and.u32 {r}, {count}, {x}, {g};
ld.param.u64 {a}, [{records}]; add.u32 {x}, {first}, {count}; mad.wide.u32 {a}, {x}, {record}, {a};
prmt.b32 {x}, {hi}, {label}, {upper}; prmt.b32 {hi}, {hi}, {tag}, {upper};
@{r} st.global.v4.b32 [{a}], {{{start}, {hi}, {lo}, {x}}};
@{g} add.u32 {count}, {count}, 1;
"""
# `BAR.SYNC` lets instructions that access no memory pass, the reading of a clock among them; a store waits for it.
_SETTLE = """
ld.param.u64 {a}, [{records}]; mad.wide.u32 {a}, {first}, {record}, {a}; @{g} st.global.b32 [{a}+-24], {count};
"""
_NAMES = ("on", "g", "r", "first", "count", "t", "lo", "hi", "x", "y", "a", "now")


@dataclass
class Insertions:
    """Texts to insert into another one, by their offsets."""

    text: str
    at: list[tuple[int, str]] = field(default_factory=list)

    def add(self, offset: int | None, *lines: str) -> None:
        """Insert lines, as one line."""
        assert offset is not None
        self.at.append((offset, " ".join(" ".join(lines).split()) + " "))

    def result(self) -> str:
        """The text with all of them."""
        parts, done = [], 0
        for offset, inserted in sorted(self.at, key=lambda one: one[0]):
            parts += [self.text[done:offset], inserted]
            done = offset
        return "".join([*parts, self.text[done:]])

    def original(self, offset: int) -> int:
        """The offset in the text before, of an offset in the result."""
        moved = 0
        for position, inserted in sorted(self.at, key=lambda one: one[0]):
            if position + moved >= offset:
                break
            moved += min(len(inserted), offset - position - moved)
        return offset - moved


def insertions(module: ir.Module, kernel: ir.Function, events: list[TimedEvent]) -> Insertions:
    """What a kernel needs in its text to record its events; the number of a label is that of its event."""
    assert module.source is not None
    text = module.source.text
    code = _Code(text)
    made = Insertions(text)
    for function in module.functions:
        if function.name == kernel.name:
            _add_parameters(made, function, code)
    assert kernel.body
    units = sorted({event.unit for event in events if event.kind in ("start", "commit")} | _polled(events))
    made.add(kernel.body[0].start, code.start(units))
    instructions = list(kernel.instructions())
    for number, event in enumerate(events):
        instruction = instructions[event.at]
        made.add(instruction.start, *code.before(event, instruction))
        made.add(instruction.end, " ", *code.after(event, instruction, number))
    assert kernel.end is not None
    made.add(kernel.end - 1, code.guard(None), code.of(_END))  # for a body that ends without `ret`
    return made


def _polled(events: list[TimedEvent]) -> set[str]:
    return {event.unit for event in events if event.kind == "poll"}


def _add_parameters(made: Insertions, function: ir.Function, code: _Code) -> None:
    """Declare the parameters, after those that there are."""
    names = code.parameters
    own = f".param .u64 {names['records']}, .param .u32 {names['blocks']}, .param .u32 {names['spans']}"
    assert function.name_end is not None
    if function.parameters:
        last = function.parameters[-1].end
        assert last is not None
        made.add(last + without_comments(made.text[last : function.end]).index(")"), f", {own}")
        return
    rest = without_comments(made.text[function.name_end : function.end])
    opened = len(rest) - len(rest.lstrip()) if rest.lstrip().startswith("(") else None
    if opened is None:
        made.add(function.name_end, f"({own})")
    else:
        made.add(function.name_end + opened + 1, own)


class _Code:
    """The PTX that records, with names that the kernel does not use."""

    def __init__(self, text: str) -> None:
        prefix = next(name for number in range(1000) if (name := f"timeline{number or ''}_") not in text)
        self.prefix = prefix
        self.parameters = {name: prefix + name for name in ("records", "blocks", "spans")}
        self.names = self.parameters | {name: f"%{prefix}{name}" for name in _NAMES}
        sizes = {"header": HEADER // RECORD, "record": RECORD, "own": OWN, "upper": UPPER_HALF}
        self.names |= {name: str(size) for name, size in sizes.items()}

    def of(self, template: str, **others: object) -> str:
        return template.format(**self.names, **{name: str(value) for name, value in others.items()})

    def since(self, unit: str) -> str:
        """The register with the time at which something of a unit started; 0 if nothing has."""
        return f"%{self.prefix}{unit}"

    def start(self, units: list[str]) -> str:
        """At the start of a kernel: its warp's header, and which thread records."""
        held = "".join(f".reg .b32 {self.since(unit)}; mov.u32 {self.since(unit)}, 0;" for unit in units)
        return self.of(_START) + held

    def guard(self, guard: ir.Guard | None) -> str:
        """Whether this thread records an instruction with a guard."""
        if guard is None:
            return self.of("mov.pred {g}, {on};")
        assert isinstance(guard.register, ir.Register)
        if not guard.negated:
            return self.of("and.pred {g}, {on}, ") + f"{guard.register.name};"
        return self.of("not.pred {r}, {p}; and.pred {g}, {on}, {r};", p=guard.register.name)

    def before(self, event: TimedEvent, instruction: ir.Instruction) -> Iterator[str]:
        """What comes before an event."""
        yield self.guard(instruction.guard)
        if event.kind == "end":
            yield self.of(_END)
        elif event.kind in ("wait", "ask", "call"):
            yield self.of("mov.u32 {t}, %clock;")
        elif event.kind in ("poll", "start", "commit"):
            held = self.since(event.unit)
            yield self.of("setp.eq.and.u32 {r}, {held}, 0, {g}; @{r} mov.u32 {held}, %clock;", held=held)

    def after(self, event: TimedEvent, instruction: ir.Instruction, number: int) -> Iterator[str]:
        """What comes after an event."""
        if event.kind in ("start", "end"):
            return
        if event.kind == "wait" and not event.unit:
            yield self.of(_SETTLE)
        if event.kind in ("poll", "ask"):
            yield self.of("and.pred {g}, {g}, {over};", over=_predicate(instruction))
        tag = "0"
        if event.mbarrier is not None:
            yield from self._address(instruction.operands[event.mbarrier])
            tag = self.names["y"]
        held = self.since(event.unit) if event.kind in ("poll", "commit") else None
        start = held or self.names["lo" if event.kind == "issue" else "t"]
        yield self.of(_RECORD, label=number, tag=tag, start=start)
        if held:
            yield self.of("@{g} mov.u32 {held}, 0;", held=held)

    def _address(self, operand: ir.Operand) -> Iterator[str]:
        """The address of an mbarrier, in eights."""
        assert isinstance(operand, ir.Address)
        base, offset = operand.base, operand.offset
        if isinstance(base, ir.Register) and base.type.width == 64:
            yield self.of("mov.b64 {{{y}, {x}}}, {base};", base=base.name)
        elif isinstance(base, ir.Immediate):
            yield self.of("mov.u32 {y}, {base};", base=base.value)
        else:
            assert isinstance(base, ir.Register | ir.VariableReference)
            yield self.of("mov.u32 {y}, {base};", base=base.name)
            offset += base.offset if isinstance(base, ir.VariableReference) else 0
        yield self.of("add.u32 {y}, {y}, {offset}; shr.u32 {y}, {y}, 3;", offset=offset)


def _predicate(instruction: ir.Instruction) -> str:
    """The result of a wait: whether the phase is over."""
    first = instruction.operands[0]
    chosen = first.first if isinstance(first, ir.Pair) else first
    assert isinstance(chosen, ir.Register)
    return chosen.name
