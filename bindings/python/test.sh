#!/usr/bin/env bash
# Builds the wheel, installs it in a clean virtual environment, and runs the tests and the notebook there.
#
#     cargo build --examples && cargo build && bindings/python/test.sh
#
# HITREG names another hitreg than target/debug/hitreg. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")"
environment=$(cd ../.. && pwd)/target/bindings-python
if ! python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "skipped: the tests of bindings/python need Python 3.9 or later with venv"
  exit 0
fi
# No compiled modules appear beside the sources.
export PYTHONPYCACHEPREFIX=$environment/cache PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH
python3 -m venv --clear "$environment"
"$environment/bin/pip" wheel --quiet --no-deps --wheel-dir "$environment/wheel" .
wheel=$(echo "$environment"/wheel/hitreg-*.whl)
"$environment/bin/pip" install --quiet --no-compile "$wheel[pandas,arrow,test]"
"$environment/bin/python" -m pytest -q -rs "$@"
