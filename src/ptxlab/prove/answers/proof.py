"""The proof of one kernel with a block: what is to be shown, in order."""

from __future__ import annotations

from collections.abc import Callable

from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.obligations.barriers import Barriers
from ptxlab.prove.obligations.bounds import Bounds
from ptxlab.prove.obligations.exits import show_exits, show_presence
from ptxlab.prove.obligations.induction import show_loop
from ptxlab.prove.obligations.initialized import Initialized
from ptxlab.prove.obligations.once import Once
from ptxlab.prove.obligations.races import Races
from ptxlab.prove.obligations.tensors import Tensors
from ptxlab.prove.obligations.tickets import CounterPlaces, Tickets
from ptxlab.prove.obligations.warp_registers import show_registers
from ptxlab.prove.questions.objects import Object, Objects
from ptxlab.prove.questions.questions import Obligation, Questions, copy_at_exit
from ptxlab.prove.questions.reasons import unknown_address
from ptxlab.prove.rings.circles import show_circles
from ptxlab.prove.rings.completion import PROXY
from ptxlab.prove.rings.orders import Orders
from ptxlab.prove.rings.parts import split
from ptxlab.prove.rings.rings import Rings
from ptxlab.prove.theories.solver import Clock


class Proof:
    """The obligations of a kernel, each with what came of it."""

    def __init__(self, execution: Execution, shared: int, sizes: dict[str, int], clock: Clock) -> None:
        accesses = [access for segment in execution.notes.segments for access in segment.accesses]
        self.orders: list[Orders] = []
        """What mbarriers order; without them it does not matter where between barriers accesses are."""
        is_ordered = any(event.address is not None or event.kind == "part" for event in execution.notes.events)
        if is_ordered or any(access.unit in PROXY or access.space == "tensor" for access in accesses):
            split(execution)
            accesses = [access for segment in execution.notes.segments for access in segment.accesses]
            self.orders.append(Orders(execution))
            if self.orders[0].has_inner:
                self.orders.append(Orders(execution, self.orders[0]))
        else:
            for access in accesses:
                access.epoch = 0
        places = CounterPlaces(execution)
        self.execution, self.objects = execution, Objects(accesses, shared, sizes)
        self.questions = Questions(execution.terms, sizes, clock)
        self.tickets = Tickets(places, execution.terms, self.objects, self.questions)
        self.obligations: list[Obligation] = []

    def show_known(self) -> None:
        """Note the accesses of which not even the array is known."""
        for access in self.objects.accesses:
            if self.objects.located(access) is None:
                why, help = unknown_address(access)
                about = "an access whose array is not known"
                self.obligations.append(Obligation("bounds", (access.line,), "open", about, why, help))

    def show_bounds(self, objects: Callable[[Object], bool], milliseconds: int) -> list[Obligation]:
        """Show that accesses to some objects are in bounds and aligned, for any thread."""
        return Bounds(self.objects, self.questions).show(objects, milliseconds)

    def show_alignment(self, milliseconds: int) -> list[Obligation]:
        """Show that accesses are aligned."""
        return Bounds(self.objects, self.questions).show_alignment(milliseconds)

    def show_loops(self, milliseconds: int) -> None:
        """Show that registers are what they are taken to be in each turn of a loop."""
        for loop in self.execution.notes.loops:
            self.obligations += show_loop(loop, self.execution.terms, self.questions, milliseconds)

    def show_barriers(self, milliseconds: int) -> None:
        """Show that all threads of a block take the same decisions on the way to each barrier."""
        self.obligations += Barriers(self.execution, self.questions).show(milliseconds)
        self.obligations += show_registers(self.execution)

    def show_mbarriers(self, milliseconds: int) -> None:
        """Show that waits at mbarriers are for the phases that they are taken for."""
        rings = [Rings(orders, self.questions) for orders in self.orders]
        for one in rings:
            self.obligations += one.show(milliseconds)
        if rings:
            self.obligations.append(show_circles(rings, milliseconds))

    def show_exits(self, milliseconds: int) -> None:
        """Show that what is asynchronous in shared memory is complete when the kernel ends."""
        self.obligations += show_exits(self.execution, self.questions, milliseconds)
        rings = [Rings(orders, self.questions) for orders in self.orders]
        self.obligations += show_presence(self.execution, lambda access: any(one.awaits(access) for one in rings))
        for one in rings:
            self.obligations += one.show_exits(milliseconds)
        for access in (one for one in self.objects.accesses if rings and one.unit == "tensor work"):
            is_awaited = any(one.is_awaited(access, milliseconds) for one in rings)
            self.obligations.append(copy_at_exit((access.line,), is_awaited, "a commit, and an mbarrier's wait"))

    def show_races(self, milliseconds: int) -> None:
        """Show that no two accesses of different threads conflict."""
        races = Races(self.execution, self.objects, self.questions, self.tickets, self.orders)
        self.obligations += races.show(milliseconds)
        self.obligations += Tensors(self.execution, self.questions).show(milliseconds)

    def show_initialized(self, milliseconds: int) -> None:
        """Show that shared memory is written before it is read."""
        self.obligations += Initialized(self.execution, self.objects, self.questions).show(milliseconds)

    def show_once(self, name: str, milliseconds: int) -> None:
        """Show that each element of an array is written once."""
        self.obligations += Once(self.execution, self.objects, self.questions, self.tickets).show(name, milliseconds)
