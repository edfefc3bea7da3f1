"""Delimiters that are not written as the protocol writes them, and the edits that make them so.

Must not know keys, nor where a value ends.
"""

from __future__ import annotations

from tamis.protocols.model import Edit
from tamis.protocols.pairs.keys import Keys
from tamis.protocols.pairs.walk import Family, delete, fix
from tamis.protocols.positions import Span


def is_run(raw: str) -> bool:
    """Whether a delimiter is a run of more than three of TAM's own characters: what of it belongs to the value, the whole block
    says (ruling 56)."""
    return len(raw) > 3 and (not raw.strip("»") or not raw.strip("«"))


def _is_backup(raw: str) -> bool:
    return len(raw) == 3 and not raw.strip("<>»«") and any(char in "<>" for char in raw)


class Spelling(Keys):
    """The part of the walk that judges delimiters."""

    def spelling(self, index: int, head: Span, tail: Span | None, family: Family) -> None:
        """Reports delimiters that are not the canonical ones, with the edits that make them so."""
        text, d = self.text, self.d
        plain = d.families["plain"]
        target = family if family.name in ("escape", "exp") else plain
        marks: list[tuple[str, Span, str]] = []
        for span, wanted in ((head, target.head), (tail, target.tail)):
            if span is not None and text[span[0] : span[1]] != wanted:
                if family.name == "plain" and d.protocol == "tam" and is_run(text[slice(*span)]):
                    continue
                marks.append((text[span[0] : span[1]], span, wanted))
        if family.name in ("escape", "exp"):
            self.found.add("VC316", head, index, minor=True)
        if not marks:
            return
        pair = self.out.pairs[index]
        args: dict[str, str | int] = {}
        if family.name == "swapped":
            code = d.codes.swapped
        elif d.protocol == "vcp":
            code = "VC312"
            args = {"raw": " … ".join(m[0] for m in marks), "canonical": " … ".join(m[2] for m in marks)}
        else:
            self.tam_spelling(index, marks)
            return
        safe = plain.tail not in text[pair.value[0] : pair.value[1]] or target is not plain
        self.found.add(
            code,
            marks[0][1],
            index,
            args=args,
            fix=fix("Write the canonical marks", *(Edit(*m[1], m[2]) for m in marks)) if safe else None,
            repair=True,
        )

    def tam_spelling(self, index: int, marks: list[tuple[str, Span, str]]) -> None:
        """``>>>`` and mixed pairs are the backup form (ruling 22); any other length or shape is misspelt."""
        for code, chosen in (
            ("TM210", [m for m in marks if _is_backup(m[0])]),
            ("TM212", [m for m in marks if not _is_backup(m[0])]),
        ):
            if chosen:
                self.found.add(
                    code,
                    chosen[0][1],
                    index,
                    args={"raw": " … ".join(m[0] for m in chosen), "canonical": " … ".join(m[2] for m in chosen)},
                    fix=fix("Write »»» and «««", *(Edit(*m[1], m[2]) for m in chosen)),
                    repair=True,
                )

    def doubled_tail(self, index: int, at: int, again: Span) -> None:
        """The closing delimiter written twice over."""
        raw = self.text[at : again[1]].strip()
        self.found.add(
            "TM212" if self.d.protocol == "tam" else "VC312",
            again,
            index,
            args={"raw": raw + raw, "canonical": raw},
            fix=fix("Remove the second one", delete(at, again[1])),
            repair=True,
        )

    def tail_only(self, index: int, tail: Span) -> None:
        """Reports the closing delimiter of a value that has no opening one."""
        plain = self.d.families["plain"]
        mark = (self.text[tail[0] : tail[1]], tail, plain.tail)
        if self.d.protocol == "tam":
            self.tam_spelling(index, [mark])
        else:
            self.found.add(
                "VC312",
                tail,
                index,
                args={"raw": mark[0], "canonical": mark[2]},
                fix=fix(f"Write {plain.tail}", Edit(*tail, plain.tail)),
                repair=True,
            )
