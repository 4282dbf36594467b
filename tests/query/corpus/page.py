"""Fills the tables of docs/sql.md from the corpus: what can be asked, what is refused, and what instead.

The prose of the page is written by hand; what stands between `<!-- corpus: SECTION -->` and `<!-- end -->` is
made of the cases whose `page` is that section. Run `make docs-sql` after a change of either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from incrowd.errors import QueryError
from tests.hospital import ROOT
from tests.query.corpus.asking import curator_of, terms
from tests.query.corpus.cases import Case, cases

PAGE = ROOT / "docs" / "sql.md"
_BLOCK = re.compile(r"<!-- corpus: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """The page with all of its tables made anew."""
    shown = [case for case in cases() if case.page]
    sections = {found[1] for found in _BLOCK.finditer(text)}
    homeless = next((case for case in shown if case.page not in sections), None)
    if homeless is not None:
        raise ValueError(f"docs/sql.md has no section {homeless.page}, for {homeless.ask}.")

    def made(found: re.Match[str]) -> str:
        of_section = [case for case in shown if case.page == found[1]]
        return f"<!-- corpus: {found[1]} -->\n{_table(of_section)}\n<!-- end -->"

    return _BLOCK.sub(made, text)


def _table(shown: list[Case]) -> str:
    if all(case.state for case in shown):
        head = ["what is asked", "SQL"]
        rows = [[case.why, _code(case.ask)] for case in shown]
    else:
        head = ["refused", "for", "instead"]
        rows = [[_code(case.ask), _cell(sentence_of(case)), _code(case.remedy)] for case in shown]
    return "\n".join([_line(head), "|" + "---|" * len(head), *map(_line, rows)])


def sentence_of(case: Case) -> str:
    """The sentence with which a question is refused now."""
    try:
        curator_of(case.tables).price(case.ask, **terms(case))
    except QueryError as error:
        return str(error)
    raise ValueError(f"It is answered now, and no longer refused: {case.ask}.")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(sql: str) -> str:
    return f"`{_cell(' '.join(sql.split()))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
