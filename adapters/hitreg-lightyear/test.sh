#!/usr/bin/env bash
# Checks and tests the adapter with its own lockfile.
#
#     cargo build && adapters/hitreg-lightyear/test.sh
#
# HITREG names another hitreg than target/debug/hitreg. Arguments go to `cargo test`.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
HITREG=$(realpath -m "${HITREG:-$root/target/debug/hitreg}")
if [ ! -x "$HITREG" ]; then
  echo "skipped: commands of hitreg on lightyear sessions: there is no $HITREG"
  HITREG=
fi
export HITREG CARGO_TARGET_DIR=$root/target/adapters
cd "$root/adapters/hitreg-lightyear"
cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps
cargo test --locked "$@"
