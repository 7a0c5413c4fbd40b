"""ptxas as the oracle for what is legal, in bulk: `judge` one text, `judge_many` thousands.

A run of ptxas on a tiny file takes about 12 ms, of which 1 ms is the file's: `judge_many` gives one run many files.
ptxas reads each by itself and names the file in its messages, but links them, so only files whose global names are
their own entries go together, under names made unique. Whatever a shared run cannot attribute is run again alone.

The verdict is that of a whole compilation at the default `-O3`: reading alone (`-arch compute_90`) is three times as
fast on big files but accepts too much shared or constant data, unresolved calls, and what crashes the code generator.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ptxlab.isa.table import heads
from ptxlab.toolchain import cache
from ptxlab.toolchain.architecture import architecture_for
from ptxlab.toolchain.header import stated_version, unterminated_comment
from ptxlab.toolchain.messages import Message, read_messages
from ptxlab.toolchain.process import Outcome, run, run_together
from ptxlab.toolchain.tools import Tool, find_assembler

DEFAULT_TIMEOUT = 60.0
_TOGETHER = 64
_TOGETHER_BYTES = 400_000
_FORMAT = "4"
_MARK = "__ptxlab_{}"


class PtxasMessage(NamedTuple):
    """One thing ptxas says; level is error, warning, info, crash or timeout."""

    line: int | None
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class _Job:
    key: str
    text: str
    architecture: str | None
    tool: Tool
    options: tuple[str, ...]
    timeout: float


def judge(
    text: str,
    target: str | None = None,
    tool: Tool | None = None,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
) -> list[PtxasMessage]:
    """What ptxas says to `text` for `target`, or for the target it states; `options` are ptxas's own, such as `-c`."""
    return judge_many([(text, target)], tool, options, timeout)[0]


def accepted(verdicts: Iterable[PtxasMessage]) -> bool:
    """Whether ptxas made an object: no error, no crash, no time-out."""
    return all(verdict.level in ("warning", "info") for verdict in verdicts)


def judge_many(
    questions: Iterable[tuple[str, str | None]],
    tool: Tool | None = None,
    options: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    workers: int = 2,
) -> list[list[PtxasMessage]]:
    """What ptxas says to each (text, target), in order; each is asked once and remembered on disk."""
    jobs = [_job(text, target, tool, tuple(options), timeout) for text, target in questions]
    known = cache.recall(job.key for job in jobs)
    missing = list({job.key: job for job in jobs if job.key not in known}.values())
    fresh = {key: _encode(verdicts) for key, verdicts in _run_all(missing, workers).items()}
    # A time-out depends on the machine's load as much as on the text.
    cache.remember({key: answer for key, answer in fresh.items() if '"timeout"' not in answer})
    known.update(fresh)
    return [[PtxasMessage(*item) for item in json.loads(known[job.key])] for job in jobs]


def _encode(verdicts: Sequence[PtxasMessage]) -> str:
    return json.dumps(verdicts)


def _job(text: str, target: str | None, tool: Tool | None, options: tuple[str, ...], timeout: float) -> _Job:
    chosen = tool or find_assembler(stated_version(text))
    architecture = architecture_for(chosen, target, text)
    key = cache.key("judge", _FORMAT, chosen.version, str(chosen.path), architecture or "", *options, text)
    return _Job(key, text, architecture, chosen, options, timeout)


def _run_all(jobs: Sequence[_Job], workers: int) -> dict[str, list[PtxasMessage]]:
    """Run the jobs in groups, `workers` at a time."""
    tasks = [partial(_run_group, group) for group in _groups(jobs)]
    return {key: verdicts for answers in run_together(tasks, workers) for key, verdicts in answers.items()}


def _groups(jobs: Sequence[_Job]) -> list[list[_Job]]:
    """Jobs that can share a run: same tool, options and header, and no name in common but what renaming parts."""
    groups: list[list[_Job]] = []
    open_groups: dict[tuple[object, ...], tuple[list[_Job], int]] = {}
    for job in jobs:
        header = _header(job.text)
        if header is None or not _can_share(job.text):
            groups.append([job])
            continue
        kind = (job.tool, job.architecture, job.options, job.timeout, header)
        group, size = open_groups.get(kind, ([], 0))
        if not group or len(group) == _TOGETHER or size + len(job.text) > _TOGETHER_BYTES:
            group, size = [], 0
            groups.append(group)
        group.append(job)
        open_groups[kind] = (group, size + len(job.text))
    return groups


_HEADER = re.compile(
    r"(?:\s|//[^\n]*\n)*(\.version\s+\d+\.\d+)\s(?:\s|//[^\n]*\n)*(\.target\s+\w+)\s(?:\s|//[^\n]*\n)*(\.address_size\s+64)\s"
)
_LINKED = re.compile(r"\.(?:extern|weak|common)\b|\.visible\b(?!\s*\.entry\b)|\.alias\b|\.file\b|\.section\b|@@DWARF")
_DECLARATION = re.compile(r"(?<!\w)\.(?:const|shared|global)\b([^;={]*)")
_VARIABLE = re.compile(r"([A-Za-z_$%][\w$]*)\s*(?:\[[^\]]*\]\s*)*(?:,|$)")
_ENTRY = re.compile(r"(\.entry\s+)([A-Za-z_$%][\w$]*)")


def _header(text: str) -> str | None:
    """The plain header of a text: ptxas holds one `.target` against `-arch`, whichever file it is from."""
    found = _HEADER.match(text)
    return " ".join(found.groups()) if found else None


def _can_share(text: str) -> bool:
    """Whether renaming its entries and variables parts a text from all others."""
    if _LINKED.search(text) or unterminated_comment(text) is not None:
        return False
    names = [found[2] for found in _ENTRY.finditer(text)]
    if any(name in heads() or re.search(rf"(?<![\w$%.]){re.escape(name)}\.", text) for name in _variables(text)):
        return False  # a variable is named as an instruction, or has parts
    once = all(len(re.findall(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", text)) == 1 for name in names)
    return once and len(names) == text.count(".entry")


def _variables(text: str) -> set[str]:
    """The names of variables that a text declares."""
    return {name for declared in _DECLARATION.findall(text) for name in _VARIABLE.findall(declared)}


def _renamed(text: str, mark: str) -> str:
    """A text whose entries and variables have a mark: ptxas takes variables of one name in two files for one."""
    text = _ENTRY.sub(rf"\1\2{mark}", text)
    for name in _variables(text):
        text = re.sub(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])", name + mark, text)
    return text


def _run_group(group: Sequence[_Job]) -> dict[str, list[PtxasMessage]]:
    """The answers for jobs of one run; what the run leaves open is asked again in smaller runs."""
    if not group:
        return {}
    if len(group) == 1:
        return {group[0].key: _run_alone(group[0])}
    answers, suspects = _shared_run(group)
    answers |= {job.key: _run_alone(job) for job in suspects}
    rest = [job for job in group if job.key not in answers]
    if answers:
        return answers | _run_group(rest)
    middle = len(group) // 2
    return _run_group(group[:middle]) | _run_group(group[middle:])


def _run_alone(job: _Job) -> list[PtxasMessage]:
    endless = unterminated_comment(job.text)
    if endless is not None:
        line = job.text.count("\n", 0, endless) + 1
        return [PtxasMessage(line, "error", "the comment never ends, and neither would ptxas")]
    return _verdicts(_ptxas({"0.ptx": job.text}, job))


# After a syntax error ptxas carries modifiers it has read over into the next file; this one takes them in.
_BUFFER = "{header}\n.entry ptxlab_buffer_{index}() {{ ret; }}\n"


def _shared_run(group: Sequence[_Job]) -> tuple[dict[str, list[PtxasMessage]], list[_Job]]:
    """What one run on all files settles, and the jobs it says something about that may not be all."""
    files = {}
    for index, job in enumerate(group):
        files[f"{index}.ptx"] = _renamed(job.text, _MARK.format(index))
        files[f"after{index}.ptx"] = _BUFFER.format(header=_header(job.text), index=index)
    outcome = _ptxas(files, group[0])
    if outcome.timed_out or outcome.signal_name:
        return {}, []
    messages = read_messages(outcome.text)
    owners = [_owner(message) for message in messages]
    if outcome.status == 0 and None not in owners:
        said: dict[str, list[PtxasMessage]] = {job.key: [] for job in group}
        for message, owner in zip(messages, owners, strict=True):
            if owner is not None:
                said[group[owner].key].append(_verdict(message, owner))
        return said, []
    answers: dict[str, list[PtxasMessage]] = {}
    for index, job in enumerate(group):
        own = [_verdict(message, index) for message in messages if message.file == f"{index}.ptx"]
        if any(verdict.level == "error" for verdict in own):
            answers[job.key] = own
    named = {owner for owner in owners if owner is not None}
    return answers, [group[index] for index in sorted(named) if group[index].key not in answers]


def _owner(message: Message) -> int | None:
    """The file of a shared run a message is about, by its name or by the name of the entry."""
    named = re.fullmatch(r"(\d+)\.ptx", message.file or "") or re.search(_MARK.format(r"(\d+)"), message.text)
    return int(named[1]) if named else None


def _ptxas(files: Mapping[str, str], job: _Job) -> Outcome:
    """Run ptxas as `job` asks on texts under their names."""
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        for name, text in files.items():
            (Path(folder) / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        architecture = ["-arch", job.architecture] if job.architecture else []
        command: list[str | Path] = [job.tool.path, *architecture, *job.options, *files, "-o", "object"]
        return run(command, Path(folder), job.timeout * (1 + len(files) / 16))


def _verdict(message: Message, index: int) -> PtxasMessage:
    """A message as it would be about the text alone, under its own names."""
    text = message.text.replace(_MARK.format(index), "").replace(f"'{index}.ptx'", "'input.ptx'")
    return PtxasMessage(message.line, message.level, text)


def _verdicts(outcome: Outcome) -> list[PtxasMessage]:
    """A run on one file as verdicts; one that ended badly without an error has one all the same."""
    found = [_verdict(message, 0) for message in read_messages(outcome.text)]
    if outcome.timed_out:
        return [*found, PtxasMessage(None, "timeout", "ptxas did not end within its time limit")]
    if outcome.signal_name:
        return [*found, PtxasMessage(None, "crash", f"ptxas was killed by {outcome.signal_name}")]
    if outcome.status != 0 and accepted(found):
        return [*found, PtxasMessage(None, "error", f"ptxas ended with status {outcome.status} and no message")]
    return found
