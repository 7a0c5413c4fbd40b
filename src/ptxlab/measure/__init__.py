"""Honest timing: kernels against the libraries a user would pick instead, on the same data, in turns.

An `Entry` says what is computed and who computes it; `measure` checks every answer against float64 before it takes any
time, and returns a `Record` that prints as a table, draws as a plot and is kept as JSON.
"""

from ptxlab.launch.launches import Launch, UnsuitedError
from ptxlab.measure.checking import WrongAnswerError, check
from ptxlab.measure.data import Draw, Host
from ptxlab.measure.entry import Entry, Work
from ptxlab.measure.record import Contender, Record, Sized
from ptxlab.measure.session import measure
from ptxlab.measure.tuning import Trial, Tuned, tune

__all__ = [
    "Contender",
    "Draw",
    "Entry",
    "Host",
    "Launch",
    "Record",
    "Sized",
    "Trial",
    "Tuned",
    "UnsuitedError",
    "Work",
    "WrongAnswerError",
    "check",
    "measure",
    "tune",
]  # fmt: skip
