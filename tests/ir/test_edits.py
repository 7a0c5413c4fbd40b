"""Every edit of a program is noticed, and what is not an edit is not."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ptxlab
from ptxlab import ir
from ptxlab.ir.node import CHANGES, Immutable, Node, Parts, latest_edit

TEXT = """// a comment
.version 8.0
.target sm_80, debug
.address_size 64
.file 1 "a.cu"
.global .u32 x[2] = {1, 2};
.func (.param .u32 r) f(.param .u32 a);
.visible .entry k(.param .u64 p // a parameter
) .maxntid 32
{
    .reg .b32 %r<3>;
    .reg .pred %p;
    .pragma "nounroll";
    .target sm_80
    .loc 1 2 3
    { // inside
        @%p add.u32 %r1, %r1, 1;
    }
proto: .callprototype (.param .u32 _) _ (.param .u32 _);
calls: .calltargets f;
there: .branchtargets done;
done:
    ret;
}
.alias g, f;
.section .debug_str { a: .b8 1, 2 }
.nv_intermediate_source_section { }
"""


def program() -> ir.Module:
    return ptxlab.parse(TEXT)


def nodes(part: object) -> Iterator[Node]:
    """All parts that can be edited in place."""
    if isinstance(part, Node) and not isinstance(part, Immutable):
        yield part
        for name in part.fields:
            yield from nodes(getattr(part, name))
    elif isinstance(part, (list, tuple)):
        for element in part:
            yield from nodes(element)


def is_noticed(edit: Callable[[], Any]) -> bool:
    before = latest_edit()
    edit()
    return latest_edit() is not before


def kinds() -> set[type[Node]]:
    found = {value for value in vars(ir).values() if isinstance(value, type) and issubclass(value, Node)}
    return {kind for kind in found if not issubclass(kind, Immutable)} - {Node}


def test_the_program_has_a_part_of_every_kind() -> None:
    assert {type(node) for node in nodes(program())} == kinds()


@pytest.mark.parametrize("kind", sorted(kinds(), key=lambda kind: kind.__name__), ids=lambda kind: str(kind.__name__))
def test_an_assignment_to_any_field_is_noticed(kind: type[Node]) -> None:
    for node in nodes(program()):
        if type(node) is kind:
            for name in kind.fields:
                value = getattr(node, name)
                assert is_noticed(lambda: setattr(node, name, value)), name  # noqa: B023
                assert type(getattr(node, name)) is not list, name


def test_every_list_is_one_whose_changes_are_noticed() -> None:
    lists = [getattr(node, name) for node in nodes(program()) for name in node.fields]
    lists = [value for value in lists if isinstance(value, list)]
    assert len(lists) > 20
    assert {type(value) for value in lists} == {Parts}
    built = ir.Function("func", "f", body=[ir.Label("a")], parameters=[])
    assert type(built.body) is type(ir.BlockStatement([]).body) is Parts


CHANGING: dict[str, Callable[[list[Any]], Any]] = {
    "__delitem__": lambda parts: parts.__delitem__(0),
    "__iadd__": lambda parts: parts.__iadd__([1]),
    "__imul__": lambda parts: parts.__imul__(2),
    "__setitem__": lambda parts: parts.__setitem__(0, 7),
    "append": lambda parts: parts.append(7),
    "clear": lambda parts: parts.clear(),
    "extend": lambda parts: parts.extend([7]),
    "insert": lambda parts: parts.insert(0, 7),
    "pop": lambda parts: parts.pop(),
    "remove": lambda parts: parts.remove(2),
    "reverse": lambda parts: parts.reverse(),
    "sort": lambda parts: parts.sort(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_of_a_list_is_noticed_and_made(name: str) -> None:
    plain, parts = [3, 1, 2], Parts([3, 1, 2])
    expected, found = CHANGING[name](plain), []
    assert is_noticed(lambda: found.append(CHANGING[name](parts)))
    assert (found[0], parts) == (expected, plain)


def test_no_method_of_a_list_that_changes_it_is_left_out() -> None:
    same = Parts([3, 1, 2])
    calls = {
        "__add__": ([1],), "__class_getitem__": (int,), "__contains__": (1,), "__eq__": (same,), "__format__": ("",),
        "__ge__": (same,), "__getattribute__": ("append",), "__getitem__": (0,), "__gt__": (same,), "__le__": (same,),
        "__lt__": (same,), "__mul__": (2,), "__ne__": (same,), "__reduce_ex__": (4,), "__rmul__": (2,), "count": (1,),
        "__subclasshook__": (list,), "index": (1,),
    }  # fmt: skip
    for name in set(dir(list)) - set(CHANGES) - {"__init__", "__new__", "__class__", "__setattr__", "__delattr__"}:
        method = getattr(same, name)
        if callable(method):
            method(*calls.get(name, ()))
            assert same == [3, 1, 2], name


def test_what_is_not_an_edit_is_not_noticed() -> None:
    module = program()
    other = TEXT.replace("%r1, 1;", "%r1, 2;")

    def use() -> None:
        ptxlab.check(module)
        ptxlab.format(module)
        module["k"]
        list(module["k"].instructions())
        assert ptxlab.parse(other) != module

    assert not is_noticed(use)
    assert not is_noticed(lambda: setattr(module["k"], "start", 0))


def test_a_copy_prints_the_same_and_is_tracked() -> None:
    module = program()
    found = copy.deepcopy(module)
    assert ptxlab.format(found) == ptxlab.format(module)
    assert is_noticed(lambda: found.items.pop())
    assert len(found.items) == len(module.items) - 1
