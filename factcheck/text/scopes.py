"""Keep what is in force at a place in the text: labels with their scope, and the subjects of earlier sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from factcheck.schema import ClaimKind
from factcheck.text import subjects
from factcheck.text.blocks import Block
from factcheck.text.inline import Visible


@dataclass(slots=True)
class Label:
    """Hold one heading, introduction or lead-in, ``visible.text[start:end]``.

    ``rank`` orders headings; ``depth`` and ``index`` are the list depth and place of the block that holds an
    introduction, and ``in_item`` tells that it is a list item. ``for_lists`` labels reach no paragraph,
    ``for_fragments`` labels no sentence. A ``stock`` label does not travel. ``tracked`` labels become pieces unless
    they are ``carried``, or ``seen`` and stock.
    """

    text: str
    visible: Visible
    start: int
    end: int
    rank: int = 0
    depth: int = 0
    index: int = 0
    in_item: bool = False
    for_lists: bool = False
    for_fragments: bool = False
    tracked: bool = True
    stock: bool = False
    needs: subjects.Need = ""
    kind: ClaimKind = "statement"
    seen: bool = False
    carried: bool = False


class Subjects(NamedTuple):
    """Hold the last drug, the last subject that a table knows, and the last subject of this block."""

    drug: str = ""
    named: str = ""
    nearest: str = ""

    def after(self, subject: subjects.Subject) -> Subjects:
        """Return the subjects in force after a sentence about ``subject``."""
        if subject.sort == "phrase":
            return self._replace(nearest=subject.text)
        drug = self.drug if subject.sort == "condition" else subject.text
        return Subjects(drug, subject.text, subject.text)

    def get(self, need: subjects.Need) -> str:
        """Return the subject that meets a need, "" if there is none; a phrase serves a pronoun of its own number."""
        if need in ("", "drug"):
            return self.drug if need else ""
        plural = self.nearest.endswith("s") and not self.nearest.endswith(("us", "ss", "is"))
        agrees = need == "any" or (need == "many") == plural
        return self.nearest if self.nearest and agrees else self.named


def in_scope(label: Label, block: Block, index: int) -> bool:
    """Tell whether an introduction still holds at ``block``, the block at place ``index``."""
    if block.level > label.depth:
        return True
    if label.in_item:
        return block.kind != "item" and block.level == label.depth
    if block.kind == "paragraph":
        return block.level == label.depth and index == label.index + 1 and not label.for_lists
    return block.kind != "item" and block.level == label.depth


def introduces(block: Block, following: Block) -> bool:
    """Tell whether ``following`` may be what the end of ``block`` introduces."""
    if following.kind == "heading" or following.level < block.level:
        return False
    return following.level > block.level or following.kind != "item"
