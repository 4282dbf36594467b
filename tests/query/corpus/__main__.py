"""What becomes of the corpus now: by file how much is answered, and what is pending.

python -m tests.query.corpus [file ...]
"""

from __future__ import annotations

import sys
from collections import Counter

from incrowd.errors import IncrowdError
from tests.query.corpus.asking import ask, table_of
from tests.query.corpus.cases import Case, cases


def outcome(case: Case) -> str:
    """`answered`, or the sentence of the refusal."""
    try:
        rows = table_of(ask(case, case.ask)).num_rows
        return "answered" if rows or case.rows == 0 else "answered without rows"
    except IncrowdError as error:
        return str(error)


def main(files: list[str]) -> None:
    found = [case for case in cases() if not files or case.file in files]
    counts: Counter[tuple[str, str]] = Counter()
    for case in found:
        became = outcome(case)
        expected = "answered" if case.state else "refused"
        really = "answered" if became == "answered" else "refused"
        counts[case.file, expected if expected == really else f"{expected}, but {really}"] += 1
        if case.pending or expected != really or case.refused not in became:
            label = f"pending {case.pending}" if case.pending else "WRONG"
            print(f"{case.file} | {label} | {' '.join(case.ask.split())}\n    {became}")
    for (file, state), count in sorted(counts.items()):
        print(f"{file:16} {state:24} {count:4}")


if __name__ == "__main__":
    main(sys.argv[1:])
