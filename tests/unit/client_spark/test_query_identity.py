"""Which query a batch belongs to, where its checkpoint has to tell: never another one, and no doubt is passed over."""

from __future__ import annotations

import pytest

from client import InvalidRequest
from client.spark.query_identity import files_of, query_at

QUERY = "29d770e4-47fa-47e6-8bb5-df13bbbde323"
FOLDER = "hdfs://name-node/checkpoints/counts"
OFFSETS = "v1\n{}"


def files(**more: str) -> dict[str, str]:
    """Of a checkpoint; the batch files by ``offsets_7``, say."""
    batches = {f"{FOLDER}/{name.replace('_', '/')}": text for name, text in more.items()}
    return {f"{FOLDER}/metadata": f'{{"id":"{QUERY}"}}'} | batches


def test_the_query_that_is_at_the_batch_is_told_by_its_checkpoint() -> None:
    assert query_at(7, files(offsets_7=OFFSETS), FOLDER) == QUERY


@pytest.mark.parametrize(
    "found",
    [files(), files(offsets_17=OFFSETS), files(offsets_7=OFFSETS, commits_7=OFFSETS), files(commits_7=OFFSETS)],
    ids=["has not come to it", "has come to another one", "has ended it", "has dropped what it is made of"],
)
def test_a_checkpoint_of_another_query_is_refused(found: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match=r"counts' is not at batch 7.*nothing was written"):
        query_at(7, found, FOLDER)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id":7}', '"id"', "null"])
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    found = files(offsets_7=OFFSETS) | {f"{FOLDER}/metadata": text}
    with pytest.raises(InvalidRequest, match="there is no checkpoint of a streaming query at 'hdfs://"):
        query_at(7, found, FOLDER)


def test_a_place_without_files_is_no_checkpoint() -> None:
    with pytest.raises(InvalidRequest, match="there is no checkpoint of a streaming query at 'here'"):
        query_at(0, {}, "here")


@pytest.mark.parametrize("checkpoint", [FOLDER, FOLDER + "/"])
def test_the_files_of_a_checkpoint_are_asked_for_together(checkpoint: str) -> None:
    assert files_of(checkpoint, 7) == FOLDER + "/{metadata,offsets/7,commits/7}"


def test_the_name_of_a_checkpoint_is_no_pattern() -> None:
    assert files_of("a [1]{b,c}*?\\", 0) == r"a \[1\]\{b,c\}\*\?\\/{metadata,offsets/0,commits/0}"
