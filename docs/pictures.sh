#!/usr/bin/env bash
# Draws the pictures of README.md: docs/pictures.sh HITREG. Needs Chromium on the PATH.
set -euo pipefail
hitreg=$(realpath "$1")
docs=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$hitreg" quickstart -o quickstart.hitlog >/dev/null
"$hitreg" report quickstart.hitlog --b-set lag_compensation.enabled=false --what-if rejudge -o page.html >/dev/null
"$hitreg" why quickstart.hitlog p1#95 --svg why.svg >/dev/null
chromium --headless --no-sandbox --hide-scrollbars --window-size=1280,800 --virtual-time-budget=20000 \
  --screenshot="$docs/report.png" "file://$work/page.html#shot=p1%2395&theme=light" 2>/dev/null
cp why.svg "$docs/why.svg"
