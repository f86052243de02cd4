from __future__ import annotations

from pathlib import Path

import pytest

from devcluster import image, jars
from devcluster.errors import JarClientMissing

PLACE = Path("/opt/hbase")


def arguments(name: str) -> list[str]:
    return image.files(PLACE)[f"arguments/{name}"].splitlines()


def test_only_what_others_ask_listens_beyond_the_container() -> None:
    for name, port in (("gateway", "9090"), ("gateway2", "9091")):
        gateway = arguments(name)
        assert gateway[gateway.index("-b") + 1] == "0.0.0.0"
        assert gateway[gateway.index("-p") + 1] == port
    settings = image.files(PLACE)["zoo.cfg"].splitlines()
    assert {"clientPort=2181", "clientPortAddress=0.0.0.0", "dataDir=/var/lib/hbase/data"} <= set(settings)
    site = image.files(PLACE)["conf/hbase-site.xml"]
    assert "0.0.0.0" not in site
    assert "<name>hbase.rootdir</name><value>file:///var/lib/hbase/data/hbase</value>" in site


@pytest.mark.parametrize("name", ["zookeeper", "hbase", "gateway", "gateway2", "stop"])
def test_each_argument_is_one_word_after_java(name: str) -> None:
    words = arguments(name)
    assert all(word and not set(word) & set(" \t\"'#\\") for word in words)
    assert words[words.index("-cp") + 1] == "/opt/hbase/conf:/opt/hbase/jars/*"
    assert "java" not in words


def test_jars_and_files_are_laid_out(tmp_path: Path) -> None:
    jar = tmp_path / "one.jar"
    jar.write_text("one", encoding="utf-8")
    image.lay_out(tmp_path / "hbase", [jar])
    assert (tmp_path / "hbase" / "jars" / "one.jar").read_text(encoding="utf-8") == "one"
    for place, content in image.files(tmp_path / "hbase").items():
        assert (tmp_path / "hbase" / place).read_text(encoding="utf-8") == content


def test_jars_that_cannot_be_had_end_it_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: object) -> tuple[Path, ...]:
        raise JarClientMissing("install Maven")

    monkeypatch.setattr(image, "checked_jars", none)
    with pytest.raises(SystemExit, match="install Maven"):
        image.main(tmp_path / "hbase")
    assert not (tmp_path / "hbase").exists()


def test_an_image_has_no_jars_that_nobody_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: object) -> tuple[Path, ...]:
        raise JarClientMissing("install Maven")

    for name in ("hbase-server", "hbase-thrift", "zookeeper"):
        (tmp_path / f"{name}-0.jar").touch()
    monkeypatch.setenv(jars.OTHER_JARS, str(tmp_path))
    monkeypatch.setattr(jars, "ensure_listed", none)
    with pytest.raises(SystemExit, match="install Maven"):
        image.main(tmp_path / "hbase")
    assert not (tmp_path / "hbase").exists()
