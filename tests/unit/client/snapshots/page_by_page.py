"""Whoever goes on page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from client import ChangesPage, RowsPage
from store import KeyRange

Page = TypeVar("Page", RowsPage, ChangesPage)


def page_by_page(read: Callable[[KeyRange], Page], whole: KeyRange, *, reverse: bool = False) -> Iterator[Page]:
    """Every page of a range."""
    rest = whole
    while True:
        page = read(rest)
        yield page
        if page.looked_at_to is None:
            return
        rest = KeyRange(rest.start, page.looked_at_to) if reverse else KeyRange(page.looked_at_to + b"\x00", rest.stop)
