"""Functions of rows and decode attention on a GPU, with torch's tensors: right, the same in every run, in graphs."""

from typing import Any

import pytest

from ptxlab import gpu
from ptxlab.kernels import cross_entropy, decode_attention, layer_norm, rms_norm, softmax

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU"),
    pytest.mark.filterwarnings("default"),  # other packages have their own
]

SHAPES = [
    (5, 33),
    (2, 3, 1000),
    (64, 8192),
    (9, 32768),
    (6, 131072),
    (3, 262144),
    (3, 100003),
    (31, 262144),
    (131, 131072),
]


def error(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
def test_rows_of_all_lengths(type: str, shape: tuple[int, ...]) -> None:
    functional = torch.nn.functional
    torch.manual_seed(0)
    columns = shape[-1]
    x, residual = (torch.randn(shape, device="cuda").to(getattr(torch, type)) for _ in range(2))
    weight, bias = (torch.rand(columns, device="cuda").to(x.dtype) + 0.5 for _ in range(2))
    targets = torch.randint(0, columns, shape[:-1], device="cuda")
    wide, w, b = x.double(), weight.double(), bias.double()
    added = x + residual
    # Rounding to the type of the result is all that counts, and as much as it does for torch.
    most = {"float32": 2e-7, "float16": 4e-3, "bfloat16": 3e-3}[type]
    loss = functional.cross_entropy(wide.reshape(-1, columns), targets.reshape(-1), reduction="none")
    for found, wanted in (
        (softmax(x), functional.softmax(wide, -1)),
        (layer_norm(x, weight, bias), functional.layer_norm(wide, (columns,), w, b)),
        (rms_norm(x, weight), functional.rms_norm(wide, (columns,), w, 1e-6)),
        (cross_entropy(x, targets, reduction="none").view(-1), loss),
    ):
        assert error(found, wanted) < most
    quantized, summed, scales = rms_norm(x, weight, residual=residual, quantize="row")
    assert torch.equal(summed, added)
    normal = functional.rms_norm(added.double(), (columns,), w, 1e-6)
    assert error(quantized.float() * scales[..., None], normal) < 0.04
    assert torch.equal(softmax(x), softmax(x, out=x.clone()))
    assert torch.equal(layer_norm(x, weight, bias), layer_norm(x, weight, bias))


def test_gradients_under_torch_compile() -> None:
    functional = torch.nn.functional
    x = torch.randn(64, 4096, device="cuda", requires_grad=True)
    weight = torch.rand(4096, device="cuda", requires_grad=True)
    targets = torch.randint(0, 4096, (64,), device="cuda")

    @torch.compile(fullgraph=True)
    def ours(x: Any, weight: Any) -> Any:
        return cross_entropy(rms_norm(softmax(x) * 50, weight), targets)

    normal = functional.rms_norm(functional.softmax(x, -1) * 50, (4096,), weight, 1e-6)
    wanted = torch.autograd.grad(functional.cross_entropy(normal, targets), (x, weight))
    for found, other in zip(torch.autograd.grad(ours(x, weight), (x, weight)), wanted, strict=True):
        assert error(found, other.double()) < 1e-4


@pytest.mark.parametrize(
    ("page", "cache", "heads", "key_heads", "size"),
    [
        (0, "bfloat16", 32, 8, 128),
        (0, "bfloat16", 4, 4, 64),
        (0, "bfloat16", 40, 2, 128),
        (0, "bfloat16", 16, 2, 256),
        (16, "bfloat16", 32, 8, 128),
        (64, "bfloat16", 32, 8, 64),
        (0, "float8_e4m3fn", 32, 8, 128),
        (16, "float8_e4m3fn", 32, 8, 128),
        (64, "float8_e4m3fn", 40, 2, 128),
        (64, "float8_e4m3fn", 8, 1, 64),
        (0, "float8_e4m3fn", 8, 1, 256),
    ],
)
def test_decode_attention(page: int, cache: str, heads: int, key_heads: int, size: int) -> None:
    torch.manual_seed(0)
    lengths, most = [3000, 1, 0, 777, 64], 3008
    q = torch.randn(5, heads, size, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(5, most, key_heads, size, device="cuda").to(getattr(torch, cache)) for _ in range(2))
    table, paged = None, (k, v)
    if page:
        order = torch.randperm(5 * most // page, device="cuda")
        paged = tuple(
            one.view(torch.uint8).view(-1, page, key_heads, one.shape[-1] * one.element_size())[order] for one in (k, v)
        )
        paged = tuple(one.contiguous().view(k.dtype) for one in paged)
        table = order.argsort().int().view(5, -1)
    counts = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    found = decode_attention(q, *paged, counts, table)
    for number, length in enumerate(lengths):
        keys, values = (one[number, :length].double().transpose(0, 1) for one in (k, v))
        query = q[number].double().view(key_heads, -1, size)
        weights = torch.softmax(query @ keys.transpose(1, 2) / size**0.5, -1)
        wanted = (weights @ values).view(heads, size)
        assert error(found[number], wanted) < 5e-3 if length else not found[number].any()
    assert all(torch.equal(decode_attention(q, *paged, counts, table), found) for _ in range(5))


@pytest.mark.parametrize("page", [0, 64])
def test_lengths_that_the_kernel_before_writes(page: int) -> None:
    """The second call starts before the first is complete, whose result has the bits of lengths, and reads old ones."""
    torch.manual_seed(2)
    few, first_k = torch.zeros(1, 8, 64, device="cuda", dtype=torch.float16), torch.randn(1, 9000, 8, 64, device="cuda")
    first_v = torch.tensor([500, 0], device="cuda", dtype=torch.int16).view(torch.float16).repeat(1, 9000, 8, 32)
    count = torch.tensor([9000], device="cuda", dtype=torch.int32)
    written = torch.empty_like(few)
    lengths = written.view(torch.int32).flatten()[:4]
    q = torch.randn(4, 16, 128, device="cuda", dtype=torch.float16)
    k, v = (torch.randn(4, 640, 4, 128, device="cuda", dtype=torch.float16) for _ in range(2))
    paged, table = (k, v), None
    if page:
        paged = tuple(one.view(-1, page, 4, 128) for one in (k, v))
        table = torch.arange(40, device="cuda", dtype=torch.int32).view(4, 10)
    wanted = decode_attention(q, k[:, :500].contiguous(), v[:, :500].contiguous(), torch.full_like(lengths, 500))
    for old in (0, 37, 640, -1, 2**31 - 1) * 3:
        lengths.fill_(old)
        torch.cuda.synchronize()
        decode_attention(few, first_k.half(), first_v, count, out=written)
        found = decode_attention(q, *paged, lengths, table)
        assert (lengths == 500).all()
        assert error(found, wanted.double()) < 1e-3


@pytest.mark.parametrize("cache", ["bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize(
    ("batch", "heads", "key_heads", "positions", "page"),
    [(1, 32, 8, 1024, 0), (8, 32, 8, 1000, 0), (3, 40, 8, 700, 0), (5, 20, 1, 300, 0), (2, 32, 8, 1024, 64)],
)
def test_short_caches(cache: str, batch: int, heads: int, key_heads: int, positions: int, page: int) -> None:
    torch.manual_seed(1)
    q = torch.randn(batch, heads, 128, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, positions, key_heads, 128, device="cuda").to(getattr(torch, cache)) for _ in range(2))
    lengths = [positions, 0, 1, positions // 2, 77, positions - 1, 64, 130][:batch]
    for number, length in enumerate(lengths):
        k[number, length:] = v[number, length:] = torch.nan
    counts = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    table = torch.arange(batch * positions // page, dtype=torch.int32, device="cuda").view(batch, -1) if page else None
    caches = [one.view(-1, page, key_heads, 128) if page else one for one in (k, v)]
    found = decode_attention(q, *caches, counts, table)
    for number, length in enumerate(lengths):
        keys, values = (one[number, :length].double().transpose(0, 1) for one in (k, v))
        query = q[number].double().view(key_heads, -1, 128)
        weights = torch.softmax(query @ keys.transpose(1, 2) / 128**0.5, -1)
        wanted = (weights @ values).view(heads, 128)
        assert error(found[number], wanted) < 5e-3 if length else not found[number].any()
    assert all(torch.equal(decode_attention(q, *caches, counts, table), found) for _ in range(20))


def test_in_a_graph() -> None:
    q = torch.randn(4, 32, 128, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(4, 2000, 8, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    lengths = torch.tensor([2000, 5, 0, 777], dtype=torch.int32, device="cuda")
    wanted = decode_attention(q, k, v, lengths)
    o, y, stream = torch.empty_like(q), torch.empty_like(q), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        softmax(decode_attention(q, k, v, lengths, out=o), out=y)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            softmax(decode_attention(q, k, v, lengths, out=o), out=y)
    o.zero_()
    y.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(o, wanted)
    assert torch.equal(y, softmax(wanted))
