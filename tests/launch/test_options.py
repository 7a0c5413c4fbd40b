"""`kernel.launch` has its real keywords: the same for kernels in PTX and in Python, and those of `LaunchOptions`."""

import inspect
from dataclasses import fields

import pytest

import ptxlab
from ptxlab.author import Kernel
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.options import LaunchOptions
from ptxlab.ir import Function

# What the documentation promises, with defaults.
PROMISED = {
    "shared": 0, "cluster": None, "device": "auto", "detectors": True, "seed": 0, "blocks": None, "on_error": "raise",
}  # fmt: skip


def test_the_keywords_are_the_options() -> None:
    found = inspect.signature(Function.launch).parameters
    assert list(found)[:4] == ["self", "grid", "block", "args"]
    keywords = {name: one.default for name, one in found.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    options = {field.name: field.default for field in fields(LaunchOptions) if field.name not in ("grid", "block")}
    assert keywords == options | {"detectors": True}  # which are all of them
    assert list(keywords) == list(options)
    assert PROMISED.items() <= keywords.items()
    assert not {"args", "kwargs"} & {name for name, one in found.items() if one.kind is inspect.Parameter.VAR_KEYWORD}


@pytest.mark.parametrize("kind", [Function, Kernel])
def test_a_launch_has_types_and_returns_a_result(kind: type) -> None:
    found = inspect.signature(kind.launch)  # type: ignore[attr-defined]
    assert found == inspect.signature(Function.launch)
    assert found.return_annotation == "Result"
    untyped = [name for name, one in found.parameters.items() if one.annotation is inspect.Parameter.empty]
    assert untyped == ["self"]
    words = inspect.getdoc(kind.launch) or ""  # type: ignore[attr-defined]
    assert [
        name for name in found.parameters if f"`{name}" not in words and name not in ("self", "grid", "block")
    ] == []


def test_every_option_reaches_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[LaunchOptions] = []
    monkeypatch.setattr("ptxlab.launch.launch", lambda kernel, args, options: seen.append(options))
    given = {
        "shared": 1, "cluster": (2, 1, 1), "device": "cpu", "detectors": ["data-race"], "seed": 3, "seeds": 4,
        "schedule": "0x3", "executor": object(), "blocks": [(5, 0, 0)], "on_error": "collect", "timeout": 6.0,
        "workers": 7, "progress": print, "profile": True, "gpu": "H200", "contract": "all", "cooperative": True,
        "overlap": True, "stream": 8, "compile": "ptxas", "wait": False, "record": ptxlab.Record(), "timeline": 9,
    }  # fmt: skip
    kernel = ptxlab.parse(".version 8.0\n.target sm_90\n.entry k { ret; }")["k"]
    kernel.launch((1, 2, 3), (4, 5, 6), [], **given)  # type: ignore[arg-type]
    found = {field.name: getattr(seen[0], field.name) for field in fields(LaunchOptions)}
    assert found == given | {"grid": (1, 2, 3), "block": (4, 5, 6), "detectors": frozenset(["data-race"])}


def test_a_kernel_is_launched_from_its_module() -> None:
    module = ptxlab.parse(".version 8.0\n.target sm_90\n.entry k { ret; }")
    with pytest.raises(ValueError, match=r"take the kernel from its module by its name: `module\['k'\]`"):
        module.functions[0].launch(1, 1)
    assert module["k"].launch(1, 1, device="cpu").diagnostics == []


def test_extents_and_checks_as_a_user_writes_them() -> None:
    def options(**given: object) -> LaunchOptions:
        return LaunchOptions(**{"grid": 4, "block": [8, 2]} | given)  # type: ignore[arg-type]

    found = options(cluster=(2,), blocks=[(1,), 3])
    assert (found.grid, found.block, found.cluster, found.blocks) == (
        (4, 1, 1), (8, 2, 1), (2, 1, 1), [(1, 0, 0), (3, 0, 0)],
    )  # fmt: skip
    assert (found.detectors, options(detectors=False).detectors) == (DETECTORS, frozenset())
    assert options(detectors="data-race").detectors == {"data-race"}
    for wrong in (
        {"grid": "4"}, {"block": (1, 2, 3, 4)}, {"cluster": 1.5}, {"blocks": [()]}, {"detectors": "race"},
        {"on_error": "ignore"}, {"timeout": 0}, {"timeout": "1"}, {"compile": "nvcc"},
    ):  # fmt: skip
        ((name, _),) = wrong.items()
        with pytest.raises(ValueError, match=f"^{name}="):
            options(**wrong)
