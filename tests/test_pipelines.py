"""The files for CI: pre-commit's hooks and GitHub's action are well-formed, and say what the commands have."""

import re
import shlex
from pathlib import Path

import click
import pytest

from ptxlab.cli.group import ptxlab

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]


def options_of(command: str) -> set[str]:
    found = ptxlab.get_command(click.Context(ptxlab), command)
    assert found is not None
    return {option for parameter in found.params for option in parameter.opts}


def test_hooks_run_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["ptxlab-check", "ptxlab-fix", "ptxlab-format"]
    for hook in hooks:
        program, command, *options = shlex.split(hook["entry"])
        assert program == "ptxlab"
        assert set(options) <= options_of(command)


def test_inputs_of_the_action_are_not_text_of_its_scripts() -> None:
    """What a workflow passes on may be a stranger's: the name of a branch."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    scripts = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)
    said = {option for script in scripts for option in re.findall(r"--[a-z-]+", script)} - {"--quiet"}
    assert said <= options_of("check")


def test_the_workflow_of_the_page_uses_inputs_that_the_action_has() -> None:
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    workflows = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    hooks, workflow = workflows
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} <= known
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    (step,) = (step for step in workflow["jobs"]["check"]["steps"] if step.get("uses", "").startswith("ptxlab/"))
    assert step["with"].keys() <= inputs.keys()
