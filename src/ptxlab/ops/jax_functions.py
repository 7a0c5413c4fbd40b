"""The functions of the gallery for arrays of JAX: eagerly, under `jit` and `vmap`, and with gradients where there are.

XLA launches the kernels on its own stream; arrays of the CPU run on the emulator. What has a gradient is a
`jax.custom_vjp` whose backward pass is made of the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from ptxlab.device.arrays import Array, Tensor
from ptxlab.ops.xla import execute, jax, shaped

BYTES = 16  # rows of matrices that TMA copies are multiples of it


def refuse_out(out: object) -> None:
    """Arrays of JAX are results of functions, and nothing writes into them."""
    if out is not None:
        raise ValueError("arrays of JAX do not change: leave `out` out, and take what is returned")


def differentiable(forward: Callable[..., object], gradients: Callable[..., Iterable[object]]) -> Callable[..., object]:
    """A function of arrays with its gradients, which take all arguments, all results and the gradients of these."""
    operator = jax().custom_vjp(forward)

    def keep(*arrays: object) -> tuple[object, object]:
        found = forward(*arrays)
        return found, (arrays, found)

    operator.defvjp(keep, lambda kept, change: tuple(gradients(*kept, change)))
    made: Callable[..., object] = operator
    return made


# Products


def matmul(
    a: Array,
    b: Array,
    bias: Array | None,
    activation: str | None,
    residual: Array | None,
    allow_tf32: bool,
    out: object,
) -> object:
    """As `ptxlab.kernels.matmul`."""
    refuse_out(out)
    _check_product(a, b)
    added = {name: one for name, one in (("bias", bias), ("residual", residual)) if one is not None}
    if str(a.dtype) == "int8":
        return _multiply(a, b, added, activation)
    return _product(tuple(added), activation, allow_tf32)(a, b, *added.values())


def _check_product(a: Array, b: Array) -> None:
    if len(a.shape) < 2 or len(b.shape) != 2:
        raise ValueError(f"`a` is {a.shape} and `b` {b.shape}: a matrix has two dimensions, and `a` may have more")
    if a.shape[-1] != b.shape[0] or not b.shape[0]:
        raise ValueError(
            f"`a` has {a.shape[-1]} columns and `b` has {b.shape[0]} rows: a product needs the same number"
        )


@cache
def _product(added: tuple[str, ...], activation: str | None, allow_tf32: bool) -> Callable[..., object]:

    def forward(a: Array, b: Array, *others: Array) -> Tensor:
        return _multiply(a, b, dict(zip(added, others, strict=True)), activation, allow_tf32=allow_tf32)

    def gradients(arrays: Sequence[Tensor], _: object, change: Tensor) -> Iterator[Tensor]:
        a, b, *others = arrays
        given = dict(zip(added, others, strict=True))
        of_sum = change
        if activation is not None:
            before = _multiply(a, b, {"bias": given["bias"]} if "bias" in given else {}, None, allow_tf32=allow_tf32)
            _, backward = jax().vjp(_activation(activation), before.astype("float32"))
            of_sum = backward(change.astype("float32"))[0].astype(change.dtype)
        rows, left = of_sum.reshape(-1, of_sum.shape[-1]), a.reshape(-1, a.shape[-1])
        yield _multiply(of_sum, b, {}, None, transposed="b", allow_tf32=allow_tf32)
        yield _multiply(left, rows, {}, None, transposed="a", allow_tf32=allow_tf32)
        if "bias" in given:
            yield rows.astype("float32").sum(0).astype(given["bias"].dtype)
        if "residual" in given:
            yield change

    return differentiable(forward, gradients)


def _multiply(
    a: Array,
    b: Array,
    added: Mapping[str, Array],
    activation: str | None,
    transposed: str = "",
    allow_tf32: bool = False,
) -> Tensor:
    """A product; `transposed` is "a" or "b" if that one is given transposed."""
    jnp = jax().numpy
    left, right = a.reshape(-1, a.shape[-1]), b
    (m, k) = left.shape[::-1] if transposed == "a" else left.shape
    n = right.shape[0] if transposed == "b" else right.shape[1]
    rows = a.shape[:-1] if transposed != "a" else (m,)
    more = -k % (BYTES // a.dtype.itemsize)
    if more:  # columns of 0
        left = jnp.pad(left, ((0, more), (0, 0)) if transposed == "a" else ((0, 0), (0, more)))
        right = jnp.pad(right, ((0, 0), (0, more)) if transposed == "b" else ((0, more), (0, 0)))
    flags = []
    if transposed == "a" and _is_copied_by_tma(left):
        flags.append(0)
    elif transposed == "a":
        left = left.T
    if transposed == "b" or not _is_copied_by_tma(right):
        flags.append(1)
        right = right if transposed == "b" else right.T
    residual = None if "residual" not in added else added["residual"].reshape(-1, n)
    given = left, right, added.get("bias"), activation, residual, allow_tf32
    made = shaped((m, n), "int32" if str(a.dtype) == "int8" else a.dtype)
    found: Tensor = execute("matmul", given, made, flags)
    return found.reshape(*rows, n)


def _is_copied_by_tma(matrix: Array) -> bool:
    """Whether a matrix whose rows do not run along k can be multiplied as it is."""
    return bool(matrix.dtype.itemsize == 2 and matrix.shape[-1] * 2 % BYTES == 0)


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    nn = jax().nn
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": nn.relu,
        "silu": nn.silu,
        "gelu": lambda x: nn.gelu(x, approximate=False),
        "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
    }
    if name not in functions:
        raise ValueError(f"activation={name!r}: expected one of {', '.join(map(repr, functions))}")
    return functions[name]


def gated_matmul(
    x: Array, w1: Array, w2: Array, activation: str, scales: Sequence[object], out: Array | None
) -> object:
    """As `ptxlab.kernels.gated_matmul`."""
    refuse_out(out)
    _check_product(x, w1)
    if x.dtype.itemsize == 1:
        return _gate(x, w1, w2, activation, scales)
    for name, one in zip(("scale_x", "scale_w1", "scale_w2"), scales, strict=True):
        if one is not None:
            raise ValueError(f"`{name}` is for arrays of float8_e4m3fn, and `x` is of {x.dtype}")
    return _gated(activation)(x, w1, w2)


def _gate(x: Array, w1: Array, w2: Array, activation: str, scales: Sequence[object] = (None, None, None)) -> Tensor:
    rows, weights = _padded(x.reshape(-1, x.shape[-1]), -1), [_padded(one, 0, x.dtype) for one in (w1, w2)]
    transposed = (1, 2) if x.dtype.itemsize == 1 else ()
    given = rows, *([one.T for one in weights] if transposed else weights), activation, *scales
    made = shaped((rows.shape[0], w1.shape[1]), "bfloat16" if transposed else x.dtype)
    found: Tensor = execute("gated_matmul", given, made, transposed)
    return found.reshape(*x.shape[:-1], w1.shape[1])


@cache
def _gated(activation: str) -> Callable[..., object]:
    def gradients(arrays: Sequence[Tensor], _: object, change: Tensor) -> tuple[Tensor, ...]:
        x, w1, w2 = arrays
        first, second = (_multiply(x, one, {}, None) for one in (w1, w2))
        active, backward = jax().vjp(_activation(activation), first.astype("float32"))
        wide = change.astype("float32")
        of_first = backward(wide * second.astype("float32"))[0].astype(x.dtype)
        of_second = (wide * active).astype(x.dtype)
        of_x = [_multiply(one, weights, {}, None, transposed="b") for one, weights in ((of_first, w1), (of_second, w2))]
        rows = x.reshape(-1, x.shape[-1])
        flat = [one.reshape(-1, one.shape[-1]) for one in (of_first, of_second)]
        return of_x[0] + of_x[1], *(_multiply(rows, one, {}, None, transposed="a") for one in flat)

    return differentiable(lambda x, w1, w2: _gate(x, w1, w2, activation), gradients)


def grouped_matmul(a: Array, b: Array, offsets: object, scale_a: object, scale_b: object, out: object) -> object:
    """As `ptxlab.kernels.grouped_matmul`."""
    refuse_out(out)
    if len(a.shape) != 2 or len(b.shape) != 3:
        raise ValueError(f"`a` is {a.shape} and `b` {b.shape}: they are m by k, and groups by k by n")
    by_columns = a.dtype.itemsize == 1
    made = shaped((a.shape[0], b.shape[2]), "bfloat16" if by_columns else a.dtype)
    given = a, b.swapaxes(1, 2) if by_columns else b, offsets, scale_a, scale_b
    return execute("grouped_matmul", given, made, (1,) if by_columns else ())


def scaled_matmul(a: Array, b: Array, scale_a: Array | float, scale_b: Array, out_type: str, out: object) -> object:
    """As `ptxlab.kernels.scaled_matmul`."""
    refuse_out(out)
    _check_product(a, b)
    types = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
    if out_type not in types:
        raise ValueError(f"out_type={out_type!r}: expected one of {', '.join(map(repr, types))}")
    made = shaped((a.shape[0], b.shape[1]), types[out_type])
    return execute("scaled_matmul", (_padded(a, -1), _padded(b, 0).T, scale_a, scale_b, out_type), made, (1,))


def quantized_matvec(
    x: Array, weights: object, scales: object, how: tuple[str, int, int, float], out: object
) -> object:
    """As `ptxlab.kernels.quantized_matvec`; `how` is the format of the matrix, its extents and factor."""
    refuse_out(out)
    _, rows, columns, _ = how
    if not x.shape or x.shape[-1] != columns:
        raise ValueError(f"`x` is {x.shape}, and rows of the matrix have {columns} weights")
    return execute("quantized_matvec", (x, weights, scales, *how), shaped((*x.shape[:-1], rows), x.dtype))


def _padded(array: Array, dimension: int, dtype: Any = None) -> Any:
    """With zeros at the end of a dimension, so that its elements are a multiple of 16 bytes."""
    more = -array.shape[dimension] % (BYTES // (dtype or array.dtype).itemsize)
    if not more:
        return array
    widths = [(0, 0)] * len(array.shape)
    widths[dimension] = (0, more)
    return jax().numpy.pad(array, widths)


# Attention


Masks = tuple[bool, int, float]  # whether it is causal, the window, the soft cap
OfHeads = tuple[Any, Any]  # slopes and sinks, of which both or either may be None


def attention(given: Sequence[Any], how: Masks, of_heads: OfHeads, out: Array) -> tuple[object, object]:
    """The answer and the log-sum-exp of `ptxlab.kernels.attention`."""
    refuse_out(out)
    q, k, v = given
    if len(q.shape) != 4:
        raise ValueError(f"`q` is {q.shape}: it is batch × heads × length × head size")
    if 0 in (*q.shape, *k.shape):
        jnp = jax().numpy
        return jnp.zeros((*q.shape[:3], v.shape[-1]), q.dtype), jnp.full(q.shape[:3], -jnp.inf, "float32")
    found: tuple[Any, Any] = _attention(how, _which(of_heads))(*given, *_present(of_heads))
    return found


def _which(of_heads: OfHeads) -> tuple[bool, bool]:
    return of_heads[0] is not None, of_heads[1] is not None


def _present(arrays: Sequence[object]) -> list[Any]:
    return [one for one in arrays if one is not None]


def _spread(has: tuple[bool, bool], arrays: Sequence[object]) -> OfHeads:
    """Slopes and sinks, None where they are not among the arrays."""
    rest = iter(arrays)
    return next(rest) if has[0] else None, next(rest) if has[1] else None


def _of_added(has: tuple[bool, bool], of_sinks: object) -> list[object]:
    """The gradients of slopes, which have none, and of sinks, where they are given."""
    return [*([None] if has[0] else []), *([of_sinks] if has[1] else [])]


@cache
def _attention(how: Masks, has: tuple[bool, bool]) -> Callable[..., Any]:
    causal, window, softcap = how

    def forward(q: Array, k: Array, v: Array, *others: object) -> Any:
        made = [shaped((*q.shape[:3], v.shape[-1]), q.dtype), shaped(q.shape[:3], "float32")]
        if softcap or any(has):
            return tuple(execute("scored_attention", (q, k, v, *_spread(has, others), *how), made))
        return tuple(execute("attention_forward", (q, k, v, causal, window), made))

    def gradients(arrays: Any, found: Any, change: Any) -> Any:
        q, k, v, *others = arrays
        options = causal, window, False, softcap
        *first, of_sinks = attention_backward((change[0], q, k, v, *found), options, _spread(has, others))
        return *first, *_of_added(has, of_sinks)

    return differentiable(forward, gradients)


def attention_backward(
    given: Sequence[Array], how: tuple[bool, int, bool, float], of_heads: OfHeads
) -> tuple[object, ...]:
    """As `ptxlab.kernels.attention_backward`, of `do`, `q`, `k`, `v`, `o` and `lse`; then that of sinks, or None."""
    made = [shaped(one.shape, one.dtype) for one in _present((*given[1:4], of_heads[1]))]
    if any(0 in one.shape for one in made):
        found = [jax().numpy.zeros(one.shape, one.dtype) for one in made]
    elif how[3] or any(_which(of_heads)):
        found = execute("scored_attention_backward", (*given, *of_heads, *how), made)
    else:
        found = execute("attention_backward", (*given, *how[:3]), made)
    return *found, *([None] if of_heads[1] is None else [])


def packed_attention(
    given: Sequence[Any], starts: tuple[Any, Any], how: Masks, of_heads: OfHeads, out: Array
) -> tuple[object, object]:
    """The answer and the log-sum-exp of `ptxlab.kernels.attention` of packed sequences."""
    refuse_out(out)
    q = given[0]
    if len(q.shape) != 3:
        raise ValueError(f"`q` has {len(q.shape)} dimensions: packed sequences are length × heads × head size")
    found: tuple[Any, Any] = _packed_attention(how, _which(of_heads))(*given, *starts, *_present(of_heads))
    return found


@cache
def _packed_attention(how: Masks, has: tuple[bool, bool]) -> Callable[..., Any]:
    causal, window, softcap = how

    def forward(q: Array, k: Array, v: Array, *others: object) -> Any:
        made = [shaped((*q.shape[:2], v.shape[-1]), q.dtype), shaped((q.shape[1], q.shape[0]), "float32")]
        given = q, k, v, *others[:2], *how, *_spread(has, others[2:])
        return tuple(execute("packed_attention", given, made))

    def gradients(arrays: Any, found: Any, change: Any) -> Any:
        q, k, v, queries, keys, *others = arrays
        given, options = (change[0], q, k, v, *found), (causal, window, False, softcap)
        *first, of_sinks = packed_attention_backward(given, (queries, keys), options, _spread(has, others))
        return *first, None, None, *_of_added(has, of_sinks)

    return differentiable(forward, gradients)


def packed_attention_backward(
    given: Sequence[object], starts: tuple[object, ...], how: tuple[bool, int, bool, float], of_heads: OfHeads
) -> tuple[object, ...]:
    """As `ptxlab.kernels.attention_backward` of packed sequences; then the gradient of sinks, or None."""
    made = [shaped(one.shape, one.dtype) for one in _present((*given[1:4], of_heads[1]))]
    found = execute("packed_attention_backward", (*given, *starts, *how, *of_heads), made)
    return *found, *([None] if of_heads[1] is None else [])


def decode_attention(q: Array, *given: Any, out: Array) -> object:
    """As `ptxlab.kernels.decode_attention`."""
    refuse_out(out)
    if 0 in (*q.shape, *given[0].shape):
        return jax().numpy.zeros(q.shape, q.dtype)
    return execute("decode_attention", (q, *given), shaped(q.shape, q.dtype))


def prefill_attention(given: Sequence[Any], how: tuple[bool, int], out: Array) -> object:
    """As `ptxlab.kernels.prefill_attention`."""
    refuse_out(out)
    q, k, v, *numbers = given
    if len(q.shape) != 3 or len(v.shape) != 4:
        raise ValueError("`q` is tokens × heads × head size, and a cache is pages × positions × heads × head size")
    made = (*q.shape[:2], v.shape[3])
    if any(0 in one.shape for one in (q, k, v, numbers[2])):
        return jax().numpy.zeros(made, q.dtype)
    return execute("prefill_attention", (*given, *how), shaped(made, q.dtype))
