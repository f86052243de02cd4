"""What every test run has: no outdated kernels, and one cluster of real services that integration tests share."""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import hypothesis
import kazoo.protocol.connection
import kazoo.retry
import pytest

import devcluster
from access.gssapi import KerberosUnavailable, require_library
from access.server_files import ServerFiles
from access.services import TlsFiles
from configuration.rooms import all_sections
from configuration.sources import FILE_VARIABLE
from devcluster.guard import Guard
from tests.certificates import Authority
from tests.examples import examples
from tests.gateways import FRAMED, HTTP, THRIFT2, gateway_of
from tests.kerberos.cluster import Kerberized, kerberized_hbase
from tests.tls_terminator import tls_before

os.environ.pop(FILE_VARIABLE, None)  # whoever set where oracles of his own are tests no other settings by it
for _section in all_sections():
    for _name in (_section.many_environment, *(_setting.environment for _setting in _section.settings)):
        os.environ.pop(_name, None)

# HBase and Spark of the tests live for minutes: what the second compiler would make faster does not pay for it.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# The tests, and what they import, are a million objects that stay. To go over them as often as Python does by default
# takes an eighth of a run; tests about what is collected do it themselves.
gc.set_threshold(10_000, 20, 100)

# Its threads draw at any time, and Hypothesis refuses a strategy during which somebody drew from the shared generator.
for _module in (kazoo.protocol.connection, kazoo.retry):
    _module.random = random.Random()

# No test asserts a time, nor how soon Hypothesis has made its examples.
hypothesis.settings.register_profile(
    "shared machine",
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("shared machine")


@dataclass(frozen=True)
class Services:
    """Where the real ZooKeeper and the real HBase Thrift gateway listen, as ``host:port``."""

    zookeeper: str
    thrift: str
    tls: TlsFiles = field(default_factory=TlsFiles)
    """For those that TLS is spoken before."""


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    given = os.environ.get("PYTHIA_TEST_ZOOKEEPER"), os.environ.get("PYTHIA_TEST_THRIFT")
    if given[0] and given[1]:
        yield Services(zookeeper=given[0], thrift=given[1])
        return
    directory = tmp_path_factory.mktemp("cluster")
    with Guard() as guard:  # of several processes of one run each is killed when the run is interrupted
        guard.watch_cluster(directory)
        cluster = devcluster.up(devcluster.ClusterSettings(directory=directory))
        _brought_up.append(directory)
        try:
            yield Services(zookeeper=cluster.zookeeper, thrift=cluster.thrift)
        finally:
            _brought_up.remove(directory)
            devcluster.down(directory, wipe=True)


_brought_up: list[Path] = []
"""The directories of the clusters that this process's tests share."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say of a failed test that a server is gone, and its last words: they are why all that comes after it fails."""
    report = yield
    if report.failed:
        for directory in _brought_up:
            found = devcluster.status(directory)
            if found.condition != "running":
                text = "\n".join([f"{found.condition}: {directory}", *found.gone])
                report.sections.append(("the services of the tests", text))
    return report


@pytest.fixture(scope="session")
def framed(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The same services, with a gateway of the other transport."""
    with gateway_of(FRAMED, services.zookeeper, tmp_path_factory.mktemp("framed")) as address:
        yield replace(services, thrift=address)


@pytest.fixture(scope="session")
def by_http(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The same services, with a gateway that listens for HTTP."""
    with gateway_of(HTTP, services.zookeeper, tmp_path_factory.mktemp("http")) as address:
        yield replace(services, thrift=address)


@pytest.fixture(scope="session")
def thrift2(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a Thrift 2 gateway to the same HBase listens."""
    with gateway_of(THRIFT2, services.zookeeper, tmp_path_factory.mktemp("thrift2")) as address:
        yield address


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[ServerFiles, TlsFiles]:
    """Those of services that let nobody in without one, and those of their clients."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    own = authority.issue("client", "client")
    files = replace(authority.issue("services"), client_authority=authority.certificate)
    return files, TlsFiles(authority.certificate, own.certificate, own.key)


@pytest.fixture(scope="session")
def secured(services: Services, certificates: tuple[ServerFiles, TlsFiles]) -> Iterator[Services]:
    """The same services, with TLS before both, which lets nobody in without a certificate."""
    files, own = certificates
    with _secured(services.zookeeper, files) as zookeeper, _secured(services.thrift, files) as thrift:
        yield Services(zookeeper, thrift, own)


@pytest.fixture(scope="session")
def secured_thrift2(thrift2: str, certificates: tuple[ServerFiles, TlsFiles]) -> Iterator[str]:
    """The Thrift 2 gateway, with the same before it."""
    with _secured(thrift2, certificates[0]) as address:
        yield address


@contextmanager
def _secured(address: str, files: ServerFiles) -> Iterator[str]:
    with tls_before(int(address.rpartition(":")[2]), files) as before:
        yield f"tls://127.0.0.1:{before.port}"


@pytest.fixture(scope="module")  # one module asks for it: an HBase and three gateways cost all others
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    """Another HBase, which asks everybody for Kerberos."""
    try:
        require_library()
    except KerberosUnavailable as error:
        pytest.skip(f"NOT TESTED: Kerberos. {error}")
    with kerberized_hbase(tmp_path_factory.mktemp("kerberized")) as running:
        yield running


_real: Counter[str] = Counter()
"""Integration tests that ran, by outcome, and the passed ones by the real services that they used."""

WITH_SPARK, WITHOUT_SPARK = "Spark, HBase and ZooKeeper", "HBase and ZooKeeper"
OWN_CONTAINERS = "containers of their own"


@pytest.hookimpl(tryfirst=True)  # before xdist looks which tests belong together
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note on each integration test which real services its fixtures bring in, and what runs in one process.

    With several processes (``make test`` has three) all tests that use the same services run in one of them, so that
    these are brought up once; the tests of one file stay together, too. A file that takes minutes goes to whichever
    process comes to it, and brings its own services up. What takes longest is handed out first.
    """
    groups: list[str] = []
    for item in items:
        fixtures, together = getattr(item, "fixturenames", ()), str(item.path)
        if item.get_closest_marker("integration"):
            used = WITH_SPARK if "spark" in fixtures or item.get_closest_marker("with_spark") else WITHOUT_SPARK
            item.user_properties.append(("real services", used))
            together = together if item.get_closest_marker("takes_minutes") else used
        elif "browser" in fixtures:
            together = WITHOUT_SPARK  # as the other tests with a browser, which one process may have to install
        groups.append(OWN_CONTAINERS if "compose_file" in fixtures else together)
        item.add_marker(pytest.mark.xdist_group(groups[-1]))
    if config.getoption("loadgroup", default=False):
        _longest_first(items, groups)


def _longest_first(items: list[pytest.Item], groups: list[str]) -> None:
    """Order tests as processes are to take groups: shared services, files that take minutes, the others by size."""
    count = Counter(groups)
    first = [WITHOUT_SPARK, WITH_SPARK, OWN_CONTAINERS]
    lasting = {group for item, group in zip(items, groups, strict=True) if item.get_closest_marker("takes_minutes")}

    def rank(numbered: tuple[int, str]) -> tuple[int, int, str]:
        group = numbered[1]
        if group in first:
            return first.index(group), 0, group
        return len(first) + (group not in lasting), -count[group], group

    items[:] = [items[at] for at, _ in sorted(enumerate(groups), key=rank)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to go on where several processes would take any test that comes, and each bring everything up."""
    if getattr(session.config.option, "loadgroup", False) and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("pytest-xdist leaves no tests together with this pytest: see pyproject.toml")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what really ran: a skipped test is not a passed one."""
    for name, used in report.user_properties:
        if name == "real services" and (report.when == "call" or report.outcome != "passed"):
            _real[report.outcome] += 1
            if report.passed:
                _real[str(used)] += 1


def pytest_unconfigure() -> None:
    """The last lines of a run: how many tests ran on real services."""
    if _real:
        passed = " and ".join(f"{_real[used]} on real {used}" for used in (WITHOUT_SPARK, WITH_SPARK))
        print(f"passed: {passed}; skipped: {_real['skipped']}")
        print(f"integration: {_real['passed']} passed, {_real['failed']} failed")
