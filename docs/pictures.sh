#!/usr/bin/env bash
# Draws the pictures of the README and the tutorials from sessions that it records: docs/pictures.sh HITREG
# Needs Chromium on the PATH. Each picture has a light and a dark form in docs/pictures.
set -euo pipefail
PATH=$(dirname "$(realpath "$1")"):$PATH
pictures=$(realpath "$(dirname "$0")")/pictures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$pictures"
cd "$work"

# draw NAME PAGE SIZE: takes a picture of a page in both colour schemes.
draw() {
  local scheme=1
  for theme in light dark; do
    chromium --headless --no-sandbox --hide-scrollbars --window-size="$3" --virtual-time-budget=20000 \
      --blink-settings=preferredColorScheme=$scheme --screenshot="$pictures/$1-$theme.png" "file://$work/$2" 2>/dev/null
    scheme=0
  done
}

# README.md: two sides of a session.
hitreg quickstart -o quickstart.hitlog >/dev/null
hitreg report quickstart.hitlog --b-set lag_compensation.enabled=false --what-if rejudge -o compared.html >/dev/null
draw compared 'compared.html#shot=p1%2395' 1200,700

# docs/tutorials/missed-shot.md: the shot of the complaint.
hitreg record synth -o match.hitlog --seed 7 --delay-ms 120 --set lag_compensation.max_unlag_ms=150 >/dev/null
hitreg report match.hitlog -o match.html >/dev/null
draw missed-shot 'match.html#shot=p0%23190' 1280,700

# docs/tutorials/ci.md: what a change does to a corpus.
mkdir netcode
for number in 1 2 3 4 5 6 7 8; do
  hitreg record synth -o "netcode/$number.hitlog" --players $((number % 3 + 2)) --seconds 20 --seed "$number" --loss 2% >/dev/null
done
hitreg diff netcode --b-set lag_compensation.enabled=false --results results >/dev/null || [ $? = 1 ]
hitreg summary results --html summary.html >/dev/null || [ $? = 1 ]
draw summary summary.html 1000,650
