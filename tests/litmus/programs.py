"""Random litmus programs, as text: 2 to 4 threads in blocks, clusters and GPUs, 2 to 4 locations, every access kind.

Written values are all different, so that a final state says which write each read has read. Half of the programs are
like programs that people write, which leave if a flag does not have its value: these are often free of races.
"""

from __future__ import annotations

from random import Random

SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = {
    "ld": ("weak", "relaxed", "acquire"),
    "st": ("weak", "relaxed", "release"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "red": ("relaxed", "release"),
    "fence": ("acquire", "release", "acq_rel", "sc"),
}


class _Program:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = random.choice((2, 2, 3, 3, 4))
        self.flags = ["f"] if random.random() < 0.7 else ["f", "g"]
        self.data = ["x"] if random.random() < 0.6 else ["x", "y"]
        self.scopes = random.choice((SCOPES, SCOPES[:1], SCOPES[2:], ("gpu",), ("cta", "gpu"), ("cluster",)))
        self.written = 0
        self.registers = [0] * self.count
        self.labels = 0

    def value(self) -> int:
        self.written += 1
        return self.written

    def register(self, thread: int) -> str:
        self.registers[thread] += 1
        return f"r{self.registers[thread] - 1}"

    def order(self, opcode: str, weak: float) -> str:
        orders = ORDERS[opcode]
        if orders[0] == "weak":
            orders = orders[:1] if self.random.random() < weak else orders[1:]
        order = self.random.choice(orders)
        return order if order == "weak" else f"{order}.{self.random.choice(self.scopes)}"

    def access(self, thread: int) -> list[str]:
        """An access to data, mostly weak, or to a flag, mostly strong; after reading a flag, perhaps leave."""
        flag = self.random.random() < 0.55
        place = self.random.choice(self.flags if flag else self.data)
        weak = 0.1 if flag else 0.8
        kind = self.random.choice(("ld", "ld", "ld", "st", "st", "st", "atom", "atom", "cas", "red", "fence", "fence"))
        if kind == "fence":
            return [f"fence.{self.order('fence', 0)}"]
        if kind == "st":
            return [f"st.{self.order('st', weak)} {place}, {self.value()}"]
        if kind == "red":
            return [f"red.{self.order('red', 0)}.add {place}, {self.value() * 16}"]
        register = self.register(thread)
        if kind == "ld":
            lines = [f"ld.{self.order('ld', weak)} {register}, {place}"]
        elif kind == "cas":
            expected = self.random.choice((0, 0, self.random.randint(1, 4)))
            lines = [f"atom.{self.order('atom', 0)}.cas {register}, {place}, {expected}, {self.value()}"]
        else:
            operation = self.random.choice(("exch", "add"))
            step = self.value() * (16 if operation == "add" else 1)
            lines = [f"atom.{self.order('atom', 0)}.{operation} {register}, {place}, {step}"]
        if flag and self.random.random() < 0.6:
            compare = self.random.choice((f"beq {register}, 0", f"beq {register}, 0", f"bne {register}, 0"))
            if self.random.random() < 0.4:
                lines.append(f"fence.{self.order('fence', 0)}")
            lines.append(f"{compare}, END")
        return lines

    def sender(self, thread: int) -> list[str]:
        """Writes data, then a flag, as messages are sent."""
        lines = [f"st.{self.order('st', 0.9)} {self.random.choice(self.data)}, {self.value()}"]
        if self.random.random() < 0.5:
            lines.append(f"fence.{self.order('fence', 0)}")
        flag = self.random.choice(self.flags)
        if self.random.random() < 0.6:
            return [*lines, f"st.{self.order('st', 0)} {flag}, {self.value()}"]
        if self.random.random() < 0.3:
            return [*lines, f"red.{self.order('red', 0)}.add {flag}, {self.value() * 16}"]
        operation = self.random.choice(("exch", "add"))
        return [
            *lines,
            f"atom.{self.order('atom', 0)}.{operation} {self.register(thread)}, {flag}, {self.value() * 16}",
        ]

    def receiver(self, thread: int) -> list[str]:
        """Reads a flag, leaves if it has not been set, then accesses data."""
        register, flag = self.register(thread), self.random.choice(self.flags)
        if self.random.random() < 0.7:
            lines = [f"ld.{self.order('ld', 0)} {register}, {flag}"]
        else:
            lines = [f"atom.{self.order('atom', 0)}.add {register}, {flag}, {self.value() * 16}"]
        lines.append(f"beq {register}, 0, END")
        if self.random.random() < 0.5:
            lines.append(f"fence.{self.order('fence', 0)}")
        place = self.random.choice(self.data)
        if self.random.random() < 0.5:
            return [*lines, f"ld.{self.order('ld', 0.9)} {self.register(thread)}, {place}"]
        return [*lines, f"st.{self.order('st', 0.9)} {place}, {self.value()}"]

    def dekker(self, thread: int) -> list[str]:
        """Writes here, reads there, with `fence.sc` between them."""
        places = self.random.sample((*self.data, *self.flags), 2)
        scope = self.random.choice(self.scopes)
        weak = [0.9 if place in self.data else 0.1 for place in places]
        write = f"st.{self.order('st', weak[0])} {places[0]}, {self.value()}"
        return [write, f"fence.sc.{scope}", f"ld.{self.order('ld', weak[1])} {self.register(thread)}, {places[1]}"]

    def part(self, thread: int) -> list[str]:
        """A few instructions of a thread."""
        if self.random.random() < 0.15:
            return self.dekker(thread)
        if self.random.random() < 0.5:
            lines = self.sender(thread) if thread == 0 or self.random.random() < 0.3 else self.receiver(thread)
            return lines if self.random.random() < 0.6 else [*lines, *self.access(thread)]
        return [line for _ in range(self.random.randint(1, 3)) for line in self.access(thread)]


def program(seed: int) -> str:
    """The random litmus program of this number."""
    random = Random(seed)
    made = _Program(random)
    places = [_place(random, random.random() < 0.3, random.random() < 0.15) for _ in range(made.count)]
    columns = [made.part(thread) for thread in range(made.count)]
    kind = random.random()
    if kind < 0.2:  # a barrier of each block, or of each cluster
        columns = [[*column, "", *made.part(thread)] for thread, column in enumerate(columns)]
        cluster = kind < 0.07
        columns = [_without_jumps(column, cluster, random) for column in columns]
        if cluster:
            places = [place if "cluster" in place else place.replace(",", ",cluster 0,", 1) for place in places]
    return _text(seed, made, places, columns)


def _place(random: Random, clustered: bool, several: bool) -> str:
    cta = random.choice((0, 0, 1, 2))
    cluster = f",cluster {random.choice((0, 0, 1))}" if clustered else ""
    return f"cta {cta}{cluster},gpu {random.choice((0, 1)) if several and not clustered else 0}"


def _without_jumps(column: list[str], cluster: bool, random: Random) -> list[str]:
    """All threads come to the barrier: jumps that skip it are left out."""
    at = column.index("")
    before = [line for line in column[:at] if not line.startswith("b")]
    if not cluster:
        return [*before, "barrier.sync 1", *column[at + 1 :]]
    order = ".relaxed" if random.random() < 0.2 else ""
    between = [line for line in column[:at] if line.startswith("ld")][:0]
    return [*before, f"barrier.cluster.arrive{order}", *between, "barrier.cluster.wait", *column[at + 1 :]]


def _text(seed: int, made: _Program, places: list[str], columns: list[list[str]]) -> str:
    columns = [[*column, "END:"] for column in columns]
    height = max(map(len, columns))
    rows = [[f"P{number}@{place}" for number, place in enumerate(places)]]
    rows += [[column[row] if row < len(column) else "" for column in columns] for row in range(height)]
    widths = [max(len(row[number]) for row in rows) for number in range(len(columns))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " ;" for row in rows]
    initial = "; ".join(f"{name} = 0" for name in (*made.flags, *made.data))
    return f"PTX random-{seed}\n{{ {initial}; }}\n" + "\n".join(f" {line}" for line in lines) + "\nexists (0 == 0)\n"
