"""Plain tables and wrapped text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

INDENT = "  "


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns under a header; ``None`` is shown as ``-``."""
    lines = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    shown = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    return "\n".join(line.rstrip() for line in shown)


def paragraph(text: str, indent: str = "", width: int = 96) -> str:
    """``text`` re-wrapped, paragraph by paragraph."""
    parts = [" ".join(part.split()) for part in text.strip().split("\n\n")]
    return "\n\n".join(_fill(part, width, indent, indent) for part in parts)


def definitions(pairs: Iterable[tuple[str, str]], width: int = 96) -> str:
    """A two-column list of terms and what they mean."""
    pairs = list(pairs)
    column = min(max((len(term) for term, _ in pairs), default=0), 34)
    lines: list[str] = []
    for term, meaning in pairs:
        head = f"{INDENT}{term.ljust(column)}  "
        rest = " " * (column + 4)
        if len(term) > column or not meaning:
            lines.append(f"{INDENT}{term}")
            head = rest
        if meaning:
            lines.append(_fill(meaning, width, head, rest))
    return "\n".join(lines)


def _fill(text: str, width: int, first: str, rest: str) -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
