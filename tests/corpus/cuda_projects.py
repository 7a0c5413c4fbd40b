"""Kernels of public projects, each from its `.cu` file; `tests.corpus.cuda_files` runs them."""

from __future__ import annotations

from tests.corpus.cuda_sample import Sample

PROJECTS: list[Sample] = []
