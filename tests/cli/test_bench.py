"""`ptxlab bench` where there is no GPU to measure on."""

import io
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxlab import gpu
from ptxlab.cli.bench import list_gallery, targets_of
from ptxlab.cli.group import ptxlab


def test_without_a_name_it_lists_the_gallery() -> None:
    outcome = CliRunner().invoke(ptxlab, ["bench"])
    assert outcome.exit_code == 0
    assert "vector_addition" in outcome.output


def test_on_a_terminal_the_gallery_fits_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stdout", Terminal())
    list_gallery()
    shown = sys.stdout.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, shown)) <= 100
    assert "sgemm" in {line.split()[0] for line in shown}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vector_adition"], "did you mean `vector_addition`?"),
        (["vector_addition", "--size", "m=3"], "there is no size `m`; expected one of n"),
        (["vector_addition", "--size", "12"], "write NAME=VALUE"),
        (["vector_addition", "--size", "n=many"], "`n` can't be `many`; it is a number, 0 or more"),
        (["vector_addition", "--size", "n=-4"], "`n` can't be `-4`; it is a number, 0 or more"),
        (["softmax", "--size", "type=f99"], "`type` can't be `f99`; it is one of f32, bf16, f16"),
        (["mma_gemm", "--size", "q=1"], "there is no size `q`; expected one of type, m, n, k, bias, activation"),
        (["mma_gemm", "--size", "activation=tanh"], "`activation` can't be `tanh`; it is one of "),
        (["vector_addition", "--variant", "best"], "there is no variant `best`"),
        (["vector_addition", "--plot", "bars.xyz"], "`bars.xyz` does not end as a picture; expected one of "),
        (["vector_addition", "--roofline", "roofline"], "`roofline` does not end as a picture; expected one of "),
        (["vector_addition", "--plot", "no/where.png"], "`no/where.png` can't be written: there is no directory `no`"),
        (
            ["vector_addition", "--json", "no/where.json"],
            "`no/where.json` can't be written: there is no directory `no`",
        ),
    ],
)
def test_a_name_that_is_not_there_is_reported(arguments: list[str], message: str) -> None:
    outcome = CliRunner().invoke(ptxlab, ["bench", *arguments])
    assert outcome.exit_code == 2
    assert message in outcome.output


@pytest.mark.parametrize("name", ["vector_addition", "--all"])
@pytest.mark.skipif(gpu.absence() is None, reason="there is a GPU")
def test_without_a_gpu_it_says_so(name: str) -> None:
    outcome = CliRunner().invoke(ptxlab, ["bench", name])
    assert outcome.exit_code == 2
    assert "GPU" in outcome.output


def test_a_variant_that_is_not_for_the_small_size_does_not_stop_a_whole_run() -> None:
    assert targets_of("attention_tile") == {"sm_80"}
    assert targets_of("block_scaled_mma") == {"sm_120a"}


EVIDENCE = Path(__file__).parents[2] / "evidence" / "bench"


def test_what_was_kept_is_shown_without_a_gpu(tmp_path: Path) -> None:
    arguments = ["bench", "--from", str(EVIDENCE / "sgemm.json"), "--plot", str(tmp_path / "bars.png")]
    outcome = CliRunner().invoke(ptxlab, arguments)
    assert outcome.exit_code == 0
    assert "double buffering" in outcome.output
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_one_page_has_all_that_was_kept_also_rows_that_lose() -> None:
    outcome = CliRunner().invoke(ptxlab, ["bench", "--all", "--from", str(EVIDENCE)])
    assert outcome.exit_code == 0
    assert outcome.output == (EVIDENCE / "README.md").read_text(encoding="utf-8")
    assert [line[3:] for line in outcome.output.splitlines() if line.startswith("## ")] == sorted(
        path.stem for path in EVIDENCE.glob("*.json")
    )
    rows = [line.split(" | ") for line in outcome.output.splitlines() if line.count(" | ") == 8]
    ratios = [float(row[5]) for row in rows if row[5].strip()[:1].isdigit()]
    assert min(ratios) < 1 < max(ratios)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all", "--from", "{file}"], "is not a directory, and `--all` has a file for each kernel"),
        (["--from", "{folder}"], "is a directory; `--all` measures or shows all kernels"),
        (["sgemm", "--all"], "`--all` goes with --json, --from, --rounds and --seed only"),
    ],
)
def test_all_takes_folders(arguments: list[str], message: str) -> None:
    filled = [one.format(file=EVIDENCE / "sgemm.json", folder=EVIDENCE) for one in arguments]
    outcome = CliRunner().invoke(ptxlab, ["bench", *filled])
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.output.split())


def test_another_file_is_not_a_record(tmp_path: Path) -> None:
    for text in ("", "{}", "[]", '{"sizes": 3}'):
        (tmp_path / "kept.json").write_text(text)
        outcome = CliRunner().invoke(ptxlab, ["bench", "--from", str(tmp_path / "kept.json")])
        assert outcome.exit_code == 2
        assert "is not a record of `ptxlab bench --json`" in outcome.output
