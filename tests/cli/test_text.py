from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlgov.cli.text import definitions, paragraph, table

WORD = st.text(st.characters(categories=["Ll", "Lu"]), min_size=1, max_size=60)


@given(st.lists(st.tuples(WORD, WORD | st.just(""))))
def test_no_term_or_meaning_is_lost(pairs: list[tuple[str, str]]) -> None:
    words = definitions(pairs).split()
    for term, meaning in pairs:
        assert term in words
        assert not meaning or meaning in words


def test_a_table_lines_up_and_shows_a_missing_value_as_such() -> None:
    assert table(("a", "long name"), [(1, None), (22, 0.123456)]) == (
        "a   long name\n1   -\n22  0.1235"
    )


def test_paragraphs_stay_apart() -> None:
    assert paragraph("a\n  b\n\nc") == "a b\n\nc"
