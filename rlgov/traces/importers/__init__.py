"""Importers: other tools' files to trace rows.

A new one is one file with a class that is decorated with `register`, and one import here.
"""

from __future__ import annotations

from rlgov.traces.importers.base import Clock, Imported, Importer, ImportReport
from rlgov.traces.importers.jtop_csv import JtopCsv
from rlgov.traces.importers.profile_csv import ProfileCsv
from rlgov.traces.importers.registry import detect, importer, names, register
from rlgov.traces.importers.tegrastats import Tegrastats

__all__ = [
    "Clock",
    "ImportReport",
    "Imported",
    "Importer",
    "JtopCsv",
    "ProfileCsv",
    "Tegrastats",
    "detect",
    "importer",
    "names",
    "register",
]
