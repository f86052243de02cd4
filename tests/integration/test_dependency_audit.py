"""What is installed with Pythia: nothing with a vulnerability that is known, nothing that does not fit together."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.integration

AUDIT_SECONDS_MAX = 240
ANSWER_SECONDS_MAX = 15


def audited() -> list[dict[str, Any]]:
    """Each package with what is known of it; a skip, said aloud, where no database of vulnerabilities answers."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    try:
        ran = subprocess.run(
            [*command, "--timeout", str(ANSWER_SECONDS_MAX)],
            capture_output=True,
            text=True,
            timeout=AUDIT_SECONDS_MAX,
            check=False,
        )
        packages = json.loads(ran.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError) as error:
        pytest.skip(f"NOT AUDITED: no database of vulnerabilities answered ({error})")
    known = [package for package in packages if "vulns" in package]
    if not known:
        pytest.skip(f"NOT AUDITED: the package index here tells no vulnerabilities of any of {len(packages)} packages")
    return known


def test_no_package_has_a_vulnerability_that_is_known() -> None:
    found = [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'none'}"
        for package in audited()
        for flaw in package["vulns"]
    ]
    assert found == []


def test_all_packages_fit_together() -> None:
    ran = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
