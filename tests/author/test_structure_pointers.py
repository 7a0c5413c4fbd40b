"""Pointers to structures: fields are loaded and stored where they are, as C lays them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxlab.author import f32, f64, function, generic_pointer, kernel, pointer, ptx, s32, struct, u8, u32, u64
from ptxlab.report import KernelError, PtxError

from ..tools import needs_ptxas


class Scaling(struct):
    factor: f32
    shift: s32


class Body(struct):
    mass: f32
    where: f64
    kind: u8
    how: Scaling


BODY = np.dtype(
    [("mass", "f4"), ("where", "f8"), ("kind", "u1"), ("how", [("factor", "f4"), ("shift", "i4")])], align=True
)


CONSTANT: Any = pointer.__class_getitem__((Body, "const"))


class Link(struct):
    value: u32
    next: pointer[Link]


@function
def moved(body: Body, by: f64) -> Body:
    return Body(body.mass, body.where + by, body.kind, body.how)


@function
def lightened(bodies: pointer[Body], i: u32) -> None:
    bodies[i].mass = bodies[i].mass - 1.0


@kernel
def step(bodies: pointer[Body], copies: pointer[Body], n: u32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with ptx.when(i < n):
        body = bodies[i]
        body.mass = body.mass * 2.0
        body.how.shift += 10
        body.kind = 7
        lightened(bodies, i)
        (copies + 1)[i] = body
        copies.at(i + 1).store(moved(copies[i + 1], 0.5))
        copies[i + 1].how = Scaling(body.how.factor, 3)


def bodies(count: int) -> np.ndarray:
    made = np.zeros(count, BODY)
    made["mass"], made["where"] = np.arange(count), np.arange(count) / 4
    made["how"]["factor"] = 1.5
    return made


def test_fields_are_read_and_written_where_they_are() -> None:
    here, there = bodies(40), np.zeros(41, BODY)
    step.launch(2, 32, [here, there, 40])
    before = bodies(40)
    assert (here["mass"] == before["mass"] * 2 - 1).all()
    assert (here["where"] == before["where"]).all()
    assert (here["kind"] == 7).all()
    assert (here["how"]["shift"] == 10).all()
    assert not there[0].tobytes().strip(b"\0")
    assert (there["where"][1:] == before["where"] + 0.5).all()
    assert (there["how"]["factor"][1:] == 1.5).all()
    assert (there["how"]["shift"][1:] == 3).all()
    assert (there["mass"][1:] == here["mass"]).all()


def test_an_index_costs_one_instruction_and_a_field_none() -> None:
    @kernel
    def k(bodies: pointer[Body]):
        body = bodies[ptx.tid.x]
        body.where = ptx.cvt.f64.f32(body.mass)
        bodies[3].how.factor = 2.0

    lines = [line.strip() for line in str(k).split("\n")]
    assert [line for line in lines if line.startswith("mad")] == ["mad.wide.u32 %rd3, %r1, 32, %rd2;"]
    assert "ld.global.f32 %f1, [%rd3];" in lines
    assert "st.global.f64 [%rd3+8], %fd1;" in lines
    assert any(line.startswith("st.global.f32 [%rd2+116], ") for line in lines)


def test_a_list_is_followed() -> None:
    @kernel
    def last(first: pointer[Link], out: pointer[u32]):
        links = ptx.local(u64, 2).view(Link).generic  # one that is made here
        links[0] = Link(9, first)
        at = links[0].next
        out[0] = at[0].next[0].value
        out[1] = first.view(u32)[0]
        out[2] = links[0].value

    out = np.zeros(3, np.uint32)
    chain = np.zeros(2, np.dtype([("value", "u4"), ("next", "u8")], align=True))
    chain["value"] = 5, 6
    chain["next"] = 0x7000_0000_0010, 0  # where the emulator puts the first array, and after its first element
    last.launch(1, 1, [chain, out])
    assert out.tolist() == [6, 5, 9]


def test_bytes_without_names() -> None:
    @kernel
    def k(bytes: pointer[struct[12, 4]], out: generic_pointer[f32]):
        out[0] = bytes[1].field(f32, 4)

    out = np.zeros(1, np.float32)
    k.launch(1, 1, [np.arange(6, dtype=np.float32), out])
    assert out[0] == 4


def test_an_array_of_other_structures_is_refused() -> None:
    packed = np.zeros(2, np.dtype([("mass", "f4"), ("where", "f8"), ("kind", "u1")]))
    with pytest.raises(KernelError, match=r"have 13 bytes, those of `pointer\[Body\]` have 32"):
        step.launch(1, 1, [packed, bodies(2), 1])


def _set(target: Any, name: str, value: Any) -> None:
    setattr(target, name, value)


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (lambda x, c: x[0].weight, "unknown-name", "`Body` has no field `weight`"),
        (lambda x, c: _set(x[0], "weight", 1.0), "unknown-name", "`Body` has no field `weight`"),
        (lambda x, c: _set(x[0], "mass", u32(1)), "operand-type", "`mass` of `Body` is a `u32`, expected a `f32`"),
        (lambda x, c: _set(x[0], "how", 1.0), "operand-type", "`how` of `Body` is the Python float 1.0, expected a `S"),
        (lambda x, c: x.store(Scaling(1.0, 2)), "operand-type", "what is stored is a `Scaling`, expected a `Body`"),
        (lambda x, c: x.v2, "vector-size", "no instruction has vectors of `Body`"),
        (
            lambda x, c: lightened(x.view(Link), 0),
            "operand-type",
            "`bodies` is a pointer into global memory, expected p",
        ),
        (
            lambda x, c: _set(c[0], "mass", 1.0),
            "read-only-parameter",
            "`mass` of `Body` is in constant memory, which is read-only",
        ),
    ],
)
def test_refused_on_the_line(write: Any, code: str, message: str) -> None:
    @kernel
    def k(x: pointer[Body], c: CONSTANT):
        write(x, c)

    with pytest.raises(PtxError) as raised:
        str(k)
    (found,) = raised.value.diagnostics
    assert (found.code, found.file) == (code, __file__)
    assert found.message.startswith(message)


def test_a_pointer_that_others_count_from_is_not_moved() -> None:
    @kernel
    def k(x: pointer[Body]):
        body = x[1]
        x += 1
        body.mass = 1.0

    with pytest.raises(PtxError, match="shared-register"):
        str(k)


@needs_ptxas
def test_ptxas_takes_them() -> None:
    from ptxlab.toolchain import assemble

    assert assemble(step.ptx).cubin is not None
