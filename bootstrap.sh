#!/bin/sh
# Makes .venv with everything the project needs, and names each thing that is missing. Run by make; safe to repeat.
set -eu
cd "$(dirname "$0")"

fail() { printf 'pythia: %s\n' "$*" >&2; exit 1; }

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is missing: install it, or name it with PYTHON=/path/to/python3"
}

java_version() { "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1; }

# The home of one that HBase runs on, beside the Java that is found.
installed_beside() {
    home=$(dirname "$(dirname "$(readlink -f "$(command -v "$1")")")")
    for each in /usr/lib/jvm/*/bin/java "$home"/../*/bin/java; do
        version=$(java_version "$each" 2>/dev/null)
        if [ "${version:-0}" -ge 17 ] && [ "$version" -le 22 ]; then
            dirname "$(dirname "$each")"
            return
        fi
    done
}

# As devcluster/java.py does: Spark takes any from 17 on, HBase one up to 22, which may be installed beside it.
check_java() {
    java=java
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
    command -v "$java" >/dev/null 2>&1 || fail "Java 17 is missing (looked for $java): install a JRE, or set JAVA_HOME"
    version=$(java_version "$java")
    [ -n "$version" ] || fail "$java does not tell its version, but says: $("$java" -version 2>&1 | head -n 3 | tr '\n' ' ')"
    if [ "$version" -ge 17 ] && [ "$version" -le 22 ]; then return; fi
    suitable=$(installed_beside "$java")
    if [ "$version" -lt 17 ]; then
        fail "Java 17 to 22 is needed, $java is version $version: set JAVA_HOME${suitable:+ to $suitable}"
    fi
    [ -n "$suitable" ] ||
        fail "HBase needs Java 17 to 22, $java is newer: install one beside it (Debian: openjdk-17-jre-headless or openjdk-21-jre-headless)"
}

python=$(find_python)
check_java
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "Python's venv module is missing for $python: install it (Debian: apt-get install python3-venv)"

installed=.venv/installed-from
if [ -x .venv/bin/pythia ] && cmp -s pyproject.toml "$installed"; then
    exit 0
fi
echo "pythia: setting up .venv with $("$python" --version); the first time takes a minute or two"
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' ||
    fail "pip could not install the packages named in pyproject.toml: is the package index reachable, with your settings?"
cp pyproject.toml "$installed"
