"""Names of C++: as people write them, and which kernel someone means."""

import pytest

import ptxlab
from ptxlab.ir.mangled import matches, plain, title, titles

NAMES = {  # what the Itanium ABI's own examples and nvcc make of these declarations
    "_Z4gemmILi128EfEvPT0_j": "gemm<128, float>",
    "_ZN1a1b4gemmILb1EEEvPfi": "a::b::gemm<true>",
    "_Z5twicePf": "twice",
    "_ZN12_GLOBAL__N_15twiceEPf": "(anonymous namespace)::twice",
    "_Z3mapI4pairIiS0_IfdEEEvPT_": "map<pair<int, pair<float, double>>>",
    "_Z6reduceIfLj64EEvPT_": "reduce<float, 64u>",
    "twice": "twice",
    "_Zwrong": "_Zwrong",
    "_ZN1a4takeIXtl1bEEvv": "a::take<...>",  # which the library does not take apart
}


@pytest.mark.parametrize(("name", "called"), NAMES.items())
def test_a_name_as_in_the_source(name: str, called: str) -> None:
    assert plain(name) == called


def test_a_long_name_is_without_its_arguments() -> None:
    name = f"_Z4gemmI{'Li1E' * 40}EvPf"
    assert plain(name) == f"gemm<{', '.join(['1'] * 40)}>"
    assert title(name) == "gemm<...>"
    assert title(f"{name}_param_3") == "param_3"


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("gemm<128,float>", ["_Z4gemmILi128EfEvPT0_j"]),
        ("gemm", ["_Z4gemmILi128EfEvPT0_j"]),
        ("a::b::gemm", ["_ZN1a1b4gemmILb1EEEvPfi"]),
        ("gemm<true>", ["_ZN1a1b4gemmILb1EEEvPfi"]),
        ("reduce<float, 64>", ["_Z6reduceIfLj64EEvPT_"]),
        ("twice", ["_Z5twicePf"]),
        ("gem", []),
        ("gemm<..., float>", ["_Z4gemmILi128EfEvPT0_j"]),
        ("map<...pair<float...>", ["_Z3mapI4pairIiS0_IfdEEEvPT_"]),
    ],
)
def test_the_closest_kernels_are_meant(wanted: str, meant: list[str]) -> None:
    assert matches(wanted, NAMES) == meant


def test_several_kernels_are_called_by_what_differs() -> None:
    names = [f"_Z4gemmI{'Li1E' * 40}{last}EvPf" for last in ("f", "d", "Li12345E")]
    assert titles(names) == ["gemm<...float...>", "gemm<...double...>", "gemm<...12345...>"]
    assert [matches(called, names) for called in titles(names)] == [[name] for name in names]


def test_a_module_knows_its_kernels_by_both_names() -> None:
    kernels = "".join(f".visible .entry {name}(.param .u64 p) {{ ret; }}\n" for name in ("_Z5twicePf", "_Z5twicePd"))
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    module = ptxlab.parse(f"{head}{kernels}.visible .entry _Z4oncePf() {{ ret; }}")
    assert module["once"].name == "_Z4oncePf"
    assert module["_Z5twicePd"].title == "twice"
    with pytest.raises(KeyError, match=r"`twice` is one of twice\(float\*\), twice\(double\*\)"):
        module["twice"]
    with pytest.raises(KeyError, match=r"no function `thrice`; .*once"):
        module["thrice"]
