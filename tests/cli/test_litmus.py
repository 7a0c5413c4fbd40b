"""`ptxlab litmus`: tables, one line a test, JSON, and exit statuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab.cli.group import ptxlab

SET = Path(__file__).parent.parent / "litmus"
MP = """PTX MP
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.weak x, 1        | ld.acquire.gpu r0, y ;
 st.release.gpu y, 1 | ld.weak r1, x        ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def litmus(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(ptxlab, ["litmus", *arguments], input=text)


def test_a_table_of_outcomes() -> None:
    shown = litmus("-", "--device", "none", text=MP)
    assert shown.exit_code == 0
    assert shown.output == (
        "MP: ~exists (P1:r0 == 1 /\\ P1:r1 == 0)\n"
        "  P1:r0  P1:r1  allowed  data race\n"
        "      0      0  yes      always\n"
        "      0      1  yes      always\n"
        "      1      0  no\n"
        "      1      1  yes      never\n"
        "  the condition holds; some executions have a data race\n"
    )


def test_what_is_observed_is_counted() -> None:
    shown = litmus(str(SET / "coww.litmus"), "--seeds", "3")
    assert shown.exit_code == 0
    assert shown.output == (
        "coww: forall (x == 2)\n"
        "  x  allowed  data race  observed  reported\n"
        "  1  no                         0         0\n"
        "  2  yes      never             3         0\n"
        "  the condition holds; no execution has a data race\n"
        "  3 runs, as warps, 1 block, global\n"
    )


def test_a_condition_that_does_not_hold_is_status_1() -> None:
    shown = litmus("-", "--device", "none", text=MP.replace("~exists", "exists"))
    assert shown.exit_code == 1
    assert "  the condition does not hold; " in shown.output


def test_a_directory_is_one_line_a_test(tmp_path: Path) -> None:
    (tmp_path / "a.litmus").write_text(MP)
    (tmp_path / "b.litmus").write_text("PTX b\n{ x = 0; }\n P0@cta 0 ;\n st.weak x, ;\n")
    (tmp_path / "c.litmus").write_text(MP.replace("st.release.gpu", "st.relaxed.gpu"))
    shown = litmus(str(tmp_path), "--device", "none")
    assert shown.exit_code == 1
    lines = shown.output.splitlines()
    assert lines[0] == f"{tmp_path}/a.litmus: the condition holds, racy"
    assert lines[1] == f"{tmp_path}/c.litmus: the condition does not hold, racy"
    assert "error[bad-litmus]: expected a register or a number, found `;`" in lines
    assert lines[-1] == "2 tests, 1 conditions hold, 0 runs, 0 tests differ from the model"


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "mp.litmus"
    file.write_text(MP)
    shown = litmus(str(file), "--device", "none", "--format", "json")
    found = json.loads(shown.output)
    (test,) = found["tests"]
    assert (test["name"], test["holds"], test["racy"], test["problems"]) == ("MP", True, True, [])
    assert test["outcomes"][2] == {
        "values": {"P1:r0": 1, "P1:r1": 0},
        "allowed": False,
        "race": None,
        "observed": 0,
        "reported_races": None,
    }


def test_proxies_are_judged_and_not_run() -> None:
    shown = litmus(str(SET / "surface-fence.litmus"))
    assert shown.exit_code == 0
    assert "  not run: `sust.weak` needs the surface proxy\n" in shown.output


@pytest.mark.parametrize("arguments", [["--device", "cuda"]])
def test_without_a_gpu_is_status_2(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxlab.litmus import run
    from ptxlab.report import KernelError, error

    def refuse(*_: object, **how: object) -> None:
        raise KernelError([error("no-gpu", "there is no GPU to run on", None)])

    monkeypatch.setattr(run, "_launch", refuse)
    assert litmus("-", *arguments, text=MP).exit_code == 2


def test_an_empty_directory_is_a_usage_error(tmp_path: Path) -> None:
    shown = litmus(str(tmp_path))
    assert shown.exit_code == 2
    assert "there is no `.litmus` file" in shown.output


def test_the_example_of_the_page_is_what_the_command_prints(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "litmus.md").read_text()
    shown, text = page.split("```console\n")[1].split("```")[0], page.split("```text\n")[1].split("```")[0]
    file = tmp_path / "mp.litmus"
    file.write_text(text)
    command, _, expected = shown.partition("\n")
    assert command == "$ ptxlab litmus mp.litmus --explore"
    assert litmus(str(file), "--explore").output == expected
