"""`verify`: does a kernel do what a task says? One verdict for what a person or a model has written.

- `task`: what is to be computed: a reference, schemas of arguments, tolerances; `formulas` of sizes.
- `submission`: the file that is judged and its launches; `python_process` runs Python elsewhere, `capture` is there.
- `foreign`: problems of KernelBench and GPU MODE; `inline`: extensions in C++, by `host_code` as Python.
- `running`: calls of it on the emulator. `parts`, `equality`, `precision`: what is judged; `recognizing`: the names of
  wrong answers. `judging` puts them together.
- `verdict`, `pages`: the answer as values, JSON, text, Markdown and HTML.
"""

from ptxlab.verify.judging import verify
from ptxlab.verify.submission import SubmissionError
from ptxlab.verify.task import Array, Scalar, Size, Task, TaskError, load_task
from ptxlab.verify.verdict import SCHEMA, Finding, Part, Verdict

__all__ = [
    "SCHEMA",
    "Array",
    "Finding",
    "Part",
    "Scalar",
    "Size",
    "SubmissionError",
    "Task",
    "TaskError",
    "Verdict",
    "load_task",
    "verify",
]
