"""Triton's kernels on the emulator: while a session is open, `kernel[grid](...)` compiles for its target, and runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy

from ptxlab import ir
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.frameworks.arrays import Arrays, NumpyArray
from ptxlab.frameworks.packages import package
from ptxlab.frameworks.torch_as_cpu import Machine, torch_as_cpu
from ptxlab.frameworks.triton.copies import without_copies
from ptxlab.frameworks.triton.driver import EmulatorDriver, UnknownPropertyError
from ptxlab.frameworks.triton.launcher import Launcher
from ptxlab.isa.targets import TARGETS
from ptxlab.report import Diagnostic, Help, KernelError, is_failure

DEFAULT_TARGET = "sm_90a"
LEAST = (3, 5)  # of Triton: the earliest that was tried
FENCED = (3, 9)  # the earliest that was seen to write the fence between `cp.async` and an MMA
_NOT_OURS = {"grid", "block", "shared", "cluster", "device", "cooperative", "overlap", "stream", "compile", "wait"}
# Triton never writes `tcgen05.fence`: that is a matter of the compiler, and no change of a kernel cures it.
CHOSEN = DETECTORS - {"missing-tensor-fence"}
OPTIONS = {field.name for field in fields(LaunchOptions)} - _NOT_OURS


@dataclass(frozen=True)
class Launched:
    """One launch of a session."""

    name: str
    grid: tuple[int, int, int]
    result: Result
    kernel: ir.Function = field(repr=False)


@dataclass
class Session:
    """What was launched, in order, and how."""

    target: str
    configs: str = "first"
    options: dict[str, Any] = field(default_factory=dict)
    launches: list[Launched] = field(default_factory=list)
    arrays: Arrays = field(default_factory=Arrays, repr=False)
    chosen: dict[int, dict[Any, Any]] = field(default_factory=dict, repr=False)
    """Configurations by autotuner and key."""
    is_dry: bool = field(default=False, repr=False)
    """Whether kernels are compiled and not launched."""
    prints: bool = True
    """Whether what kernels print is printed, as on a GPU."""
    mode: Callable[[], Any] | None = field(default=None, repr=False)
    """What other threads enter to see the same torch."""

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was found in all launches."""
        return [one for launched in self.launches for one in launched.result.diagnostics]

    def launch(self, launcher: Launcher, grid: tuple[int, int, int], args: Sequence[object]) -> None:
        """Launch a kernel that Triton compiled."""
        if self.is_dry:
            return
        kernel = launcher.module[launcher.name]
        chosen = {"detectors": CHOSEN} | self.options | {"on_error": "collect"}
        result = launcher.launch(grid, args, self.arrays, **chosen)
        self._found = False
        if "detectors" not in self.options:
            result.diagnostics = without_copies(result.diagnostics, kernel, launcher.is_gluon)
        if not launcher.is_gluon:
            result.diagnostics = [_cured_by_upgrade(one) for one in result.diagnostics]
        self.launches.append(Launched(launcher.name, grid, result, kernel))
        if is_failure(result.diagnostics, self.options.get("on_error", "raise")):
            raise KernelError(result.diagnostics)
        if self.prints and result.output:
            sys.stdout.write(result.output)

    def tune(self, call: Callable[[], object], **how: object) -> list[float]:
        """Instead of a benchmark of a configuration: the first that fits this target wins.

        With `configs="all"` each of them runs on the emulator, so that what is wrong with any of them is found.
        """
        if self.configs == "all":
            call()
        elif self._found:
            return [float("inf")] * 3
        else:
            self.is_dry = True
            try:
                call()
            finally:
                self.is_dry = False
        self._tried += 1
        self._found = True
        return [float(self._tried)] * 3

    _tried: int = field(default=0, repr=False)
    _found: bool = field(default=False, repr=False)


def _cured_by_upgrade(found: Diagnostic) -> Diagnostic:
    """A finding, with what can be done about one that Triton's compiler causes, which writes the fences of a kernel."""
    version = import_module("triton").__version__
    if found.code != "missing-proxy-fence" or tuple(map(int, version.split(".")[:2])) >= FENCED:
        return found
    help = f"Triton {version} leaves this fence out: upgrade to {'.'.join(map(str, FENCED))} or later, which writes it"
    return replace(found, helps=(Help(help),))


@contextmanager
def emulated(
    target: str | int = DEFAULT_TARGET, *, configs: str = "first", cuda: bool = True, **options: object
) -> Iterator[Session]:
    """Run Triton's kernels on the emulator while this context is open; host code stays as it is.

    Kernels are compiled for `target` by the installed Triton. With `cuda=True`, torch says that there is a GPU of that
    target; where there is none, tensors on `"cuda"` are in the host's memory. Where there is one, each launch copies
    the memory of tensors on it here and back. Of an autotuned kernel, the first configuration that fits runs, or with
    `configs="all"` each of them. `options` are those of `kernel.launch`: `seed`, `detectors`, `on_error`, `timeout`,
    `profile`, …

    >>> with ptxlab.triton.emulated("sm_80") as session:  # doctest: +SKIP
    ...     kernel[(4,)](x, y, 1024, BLOCK=256)
    >>> session.launches[0].result.counters["instructions"]  # doctest: +SKIP
    """
    with opened(Session(target_of(target), configs, _checked(options)), cuda) as session:
        yield session


def run(
    kernel: object,
    grid: object,
    *args: object,
    target: str | int = DEFAULT_TARGET,
    configs: str = "first",
    **named: object,
) -> Result:
    """Run a Triton or Gluon kernel on the emulator: tensors of torch, or arrays of NumPy, are changed in place.

    `named` are the kernel's parameters by name, Triton's options (`num_warps`, `num_stages`, …) and the options of
    `kernel.launch` (`seed`, `detectors`, `on_error`, `profile`, …); where a parameter has the name of an option, it is
    the parameter.

    >>> ptxlab.triton.run(add, (4,), x, y, out, 1000, BLOCK=256, target="sm_100a")  # doctest: +SKIP
    """
    triton = _triton()
    if not isinstance(kernel, triton.runtime.jit.KernelInterface):
        raise TypeError(f"`run` takes a kernel, a function with @triton.jit or @gluon.jit, not {kernel!r:.60}")
    known = _names(kernel)
    options = {name: value for name, value in named.items() if name in OPTIONS and name not in known}
    others = {name: value for name, value in named.items() if name not in options}
    session = Session(target_of(target), configs, _checked(options), prints=False)
    with opened(session, True):
        try:
            kernel.run(*args, grid=grid if callable(grid) else _extents(grid), warmup=False, **others)
        except TypeError as caught:
            raise _plain(caught, kernel, [*args, *others.values()]) from None
        except KeyError as caught:
            raise _unknown(caught, known) from None
    if not session.launches:
        return Result()
    result = session.launches[-1].result
    before = [one for launched in session.launches[:-1] for one in launched.result.diagnostics]
    result.diagnostics[:0] = before
    return result


def target_of(given: str | int) -> str:
    """A target as ptxlab and Triton know it.

    >>> target_of("sm_90"), target_of(100), target_of("sm_80")
    ('sm_90a', 'sm_100a', 'sm_80')
    """
    found = re.fullmatch(r"(?:sm_?)?(\d+)[af]?", str(given))
    number = int(found[1]) if found else 0
    name = f"sm_{number}" + "a" * (number >= 90)
    if number < 80 or name not in map(str, TARGETS):
        raise ValueError(f"target={given!r}: there are sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, …")
    return name


def _triton() -> Any:
    found = package("triton", "triton", "`ptxlab.triton`", LEAST)
    if found.knobs.runtime.interpret if hasattr(found, "knobs") else False:
        raise RuntimeError("TRITON_INTERPRET is set: Triton then compiles nothing; unset it before kernels are defined")
    return found


def _checked(options: dict[str, object]) -> dict[str, object]:
    unknown = sorted(options.keys() - OPTIONS)
    if unknown:
        raise TypeError(f"there is no option `{unknown[0]}`; a launch has {', '.join(sorted(OPTIONS))}")
    return options


def _names(kernel: Any) -> set[str]:
    """The names of a kernel's parameters, and those that configurations and heuristics give."""
    while not hasattr(kernel, "params"):
        kernel = kernel.fn
    return set(kernel.arg_names)


def _extents(grid: object) -> tuple[int, ...]:
    extents = grid if isinstance(grid, (tuple, list)) else (grid,)
    if any(isinstance(extent, str) or not hasattr(extent, "__index__") for extent in extents):
        raise TypeError(
            f"grid={grid!r}: it is a number, a tuple of up to three, or a function of the kernel's constants"
        )
    return tuple(int(extent) for extent in extents)


def _plain(caught: TypeError, kernel: Any, given: Sequence[object]) -> TypeError:
    """What Python says of a call, with the kernel's name instead of that of Triton's generated function."""
    if "failed to specialize" in str(caught):
        wrong = next((one for one in given if isinstance(one, (list, str, bytes, set, dict))), None)
        return TypeError(f"{wrong!r:.60} is not an argument of a kernel: those are tensors of torch, arrays of "
                         "NumPy, tensor descriptors, numbers, and tuples of these")  # fmt: skip
    while not hasattr(kernel, "params"):
        kernel = kernel.fn
    text = str(caught).replace("dynamic_func()", f"`{kernel.__name__}`")
    return TypeError(text)


def _unknown(caught: KeyError, known: set[str]) -> Exception:
    text = str(caught.args[0]) if caught.args else ""
    if "unrecognised" not in text:
        return caught
    name = text.split()[2]
    return TypeError(
        f"`{name}` is not a parameter of the kernel ({', '.join(sorted(known))}), an option of Triton (num_warps, "
        f"num_stages, num_ctas, …) or of a launch ({', '.join(sorted(OPTIONS))})"
    )


@contextmanager
def opened(session: Session, cuda: bool, machine: Machine | None = None) -> Iterator[Session]:
    """A session while it is open: Triton's driver, and what it does with arrays and configurations, are replaced."""
    if session.configs not in ("first", "all"):
        raise ValueError(f"configs={session.configs!r}: expected 'first' or 'all'")
    _triton()
    jit = import_module("triton.runtime.jit")
    autotuner = import_module("triton.runtime.autotuner")
    driver = import_module("triton.runtime.driver").driver
    emulator = EmulatorDriver(session.target, partial(Launcher, run=_launch), session.tune)
    with ExitStack() as stack:
        before = dict(vars(driver))
        stack.callback(lambda: (vars(driver).clear(), vars(driver).update(before)))
        driver.set_active(emulator)
        stack.enter_context(patch.object(jit.JITFunction, "run", _with_arrays(jit.JITFunction.run, session)))
        stack.enter_context(patch.object(autotuner.Autotuner, "run", _with_choice(autotuner.Autotuner.run, session)))
        stack.enter_context(patch.object(autotuner.Autotuner, "_bench", _untimed(autotuner.Autotuner._bench, session)))
        stack.enter_context(patch.object(import_module("triton.testing"), "do_bench", run_once))
        session.mode = stack.enter_context(torch_as_cpu(session.arrays, session.target, cuda, machine))
        _open.append(session)
        stack.callback(_open.pop)
        yield session


_open: list[Session] = []


def _launch(launcher: Launcher, grid: tuple[int, int, int], args: Sequence[object]) -> None:
    """Launch in the session that is open: Triton keeps launchers longer than a session."""
    _open[-1].launch(launcher, grid, args)


def _with_arrays(run: Callable[..., object], session: Session) -> Callable[..., object]:
    """Triton's `run` of a kernel, for arrays of NumPy too."""

    def wrapped(value: object) -> Any:
        return NumpyArray(value, session.arrays) if isinstance(value, numpy.ndarray) else value

    @wraps(run)
    def replaced(self: object, *args: object, **named: object) -> object:
        given = {name: wrapped(value) for name, value in named.items()}
        return run(self, *map(wrapped, args), **given)

    return replaced


def _with_choice(run: Callable[..., object], session: Session) -> Callable[..., object]:
    """Triton's `run` of an autotuned kernel: its choices are the session's, and none is written to disk.

    No model of a GPU's speed is asked: it would choose among configurations of which the first runs.
    """

    @wraps(run)
    def replaced(self: Any, *args: object, **named: object) -> object:
        own = {"cache": session.chosen.setdefault(id(self), {}), "cache_results": False}
        own |= {"perf_model": None, "early_config_prune": _without_clocks(self.early_config_prune)}
        session._found = False
        arrays = [NumpyArray(one, session.arrays) if isinstance(one, numpy.ndarray) else one for one in args]
        with _having(self, own):
            return run(self, *arrays, **named)

    return replaced


def _untimed(bench: Callable[..., object], session: Session) -> Callable[..., object]:
    """Triton's benchmark of one configuration, which tuners with a `run` of their own call, too."""

    @wraps(bench)
    def replaced(self: object, *args: object, **named: object) -> object:
        with _having(self, {"do_bench": session.tune}):
            return bench(self, *args, **named)

    return replaced


@contextmanager
def _having(tuner: object, own: dict[str, object]) -> Iterator[None]:
    """A tuner with other attributes than its own, but for what it sets meanwhile."""
    before = {name: vars(tuner)[name] for name in own if name in vars(tuner)}
    vars(tuner).update(own)
    try:
        yield
    finally:
        for name in own:
            vars(tuner).pop(name, None)
        vars(tuner).update(before)


def run_once(
    call: Callable[[], object], *how: object, quantiles: Any = None, return_mode: str = "mean", **more: object
) -> list[float] | float:
    """Instead of `triton.testing.do_bench`: the emulator can't say how long a call takes, but what is wrong with it."""
    call()
    times = [float("nan")] * len(quantiles or (0,))
    return times if quantiles or return_mode == "all" else times[0]


def _without_clocks(prune: Callable[..., object] | None) -> Callable[..., object] | None:
    """What a program leaves out configurations by; one that asks for a GPU's clocks leaves out those that are slow."""
    if prune is None:
        return None

    def pruned(configs: list[object], *args: object, **named: object) -> list[object] | object:
        try:
            return prune(configs, *args, **named)
        except UnknownPropertyError:
            return configs

    return pruned
