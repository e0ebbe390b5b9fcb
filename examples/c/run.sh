#!/usr/bin/env bash
# Builds the examples against the static library, and checks hitreg's results for their sessions.
#
#     cargo build
#     examples/c/run.sh target/debug
#
# HITREG_SANITIZE=0 builds without sanitizers, for Valgrind and for compilers without sanitizers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
built=$(cd "$1" && pwd)
hitreg=$built/hitreg
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

flags=(-g -O1 -Wall -Wextra -Werror -I "$here/../../crates/hitreg-capi/include")
[ "${HITREG_SANITIZE:-1}" = 0 ] || flags+=(-fsanitize=address,undefined -fno-sanitize-recover=all)
# `cargo test` leaves the library in `deps`.
library=$built/libhitreg_capi.a
[ -f "$library" ] || library=$built/deps/libhitreg_capi.a
libs=("$library" -lpthread -ldl -lm)
compile() { cc -std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off "${flags[@]}" "$@" "${libs[@]}"; }
# expect CODE TEXT COMMAND…: checks the exit code and the output of a command.
expect() {
  local code=$1 text=$2 found=0
  shift 2
  "$@" >said.txt 2>&1 || found=$?
  if [ "$found" != "$code" ] || ! grep -qE -- "$text" said.txt; then
    echo "FAILED ($found, not $code; wanted: $text): $*" >&2
    cat said.txt >&2
    exit 1
  fi
  echo "ok: $(basename "$1") ${*:2}"
}

compile "$here/misuse.c" -o misuse
expect 0 '^0 faults' ./misuse a.hitlog a.hittrace

compile "$here/anything.c" -o anything
expect 0 'nothing found' ./anything . 1 300
expect 0 'nothing found' ./anything . 7 1
expect 0 'players +3' "$hitreg" info anything-7.hitlog
expect 0 'size' "$hitreg" report anything-7.hitlog -o anything-7.html

compile "$here/everything.c" -o everything
expect 0 '^0 faults' ./everything everything.hitlog bodies.hitlog
expect 0 'players +1' "$hitreg" info everything.hitlog

compile "$here/game.c" -o game
compile -DBUG "$here/game.c" -o game_bug
expect 0 'records in' ./game record slide.hitlog
expect 0 'players +2' "$hitreg" info slide.hitlog
expect 0 '2,000 ticks' "$hitreg" info slide.hitlog
expect 0 'same' "$hitreg" diff slide.hitlog --a ./game --b ./game
expect 1 'shots' "$hitreg" diff slide.hitlog --a ./game --b ./game_bug
expect 1 'slide.friction is 3 in B' "$hitreg" diff slide.hitlog --a ./game --b ./game --b-set slide.friction=3
expect 0 '1 ok' "$hitreg" verify slide.hitlog --build ./game
expect 1 'differs' "$hitreg" verify slide.hitlog --build ./game_bug
expect 0 'keeps the contract' "$hitreg" check ./game slide.hitlog
expect 1 'wrong +hashes as recorded' "$hitreg" check ./game_bug slide.hitlog
expect 1 'tick' "$hitreg" bisect ticks slide.hitlog --a ./game --b ./game_bug

# A build that declares no optional command is called only to replay.
printf '#!/bin/sh\necho "$1" >>calls.txt\nexec ./game "$@"\n' >logged
printf '#!/bin/sh\necho "$1" >>calls.txt\nexec ./game_bug "$@"\n' >logged_bug
chmod +x logged logged_bug
expect 1 'tick' "$hitreg" bisect ticks slide.hitlog --a ./logged --b ./logged_bug
expect 0 '^replay$' sort -u calls.txt
[ "$(sort -u calls.txt)" = replay ] || { echo "FAILED: other calls than replay" >&2; exit 1; }

# `shrink` finds the smallest session with the difference; the builds replay each candidate.
expect 0 'shows' "$hitreg" shrink slide.hitlog -o small.hitlog --a ./game --b ./game_bug --on hits
expect 1 'shots' "$hitreg" diff small.hitlog --a ./game --b ./game_bug --on hits
expect 0 'tick hashes match' "$hitreg" verify slide.hitlog --build ./game

# A part of a session replays from its beginning.
expect 0 'records in' ./game rotate long.hitlog
expect 0 '4 ok' "$hitreg" verify long-0001.hitlog long-0002.hitlog long-0003.hitlog long-0004.hitlog --build ./game
expect 1 'differs' "$hitreg" verify long-0003.hitlog --build ./game_bug
expect 0 'records in' ./game keep kept.hitlog 30
expect 0 'paused' "$hitreg" info kept.hitlog
expect 0 '1 ok' "$hitreg" verify kept.hitlog --build ./game
expect 1 'shots' "$hitreg" diff kept.hitlog --a ./game --b ./game_bug

# Eight versions; the fifth is the first with the fault.
for version in 1 2 3 4 5 6 7 8; do
  bug=()
  [ "$version" -lt 5 ] || bug=(-DBUG)
  compile "${bug[@]}" -DVERSION="$version" "$here/game.c" -o "game$version"
done
expect 1 'game5' "$hitreg" bisect builds slide.hitlog ./game1 ./game2 ./game3 ./game4 ./game5 ./game6 ./game7 ./game8

# The versions as commits; each is compiled in its own worktree.
mkdir source
git -C source init -q
for version in 1 2 3 4 5 6 7 8; do
  { [ "$version" -lt 5 ] || echo '#define BUG'; echo "#define VERSION $version"; cat "$here/game.c"; } >source/game.c
  git -C source add game.c
  git -C source -c user.name=team -c user.email=team@example.org commit -qm "version $version"
  git -C source tag "v$version"
done
export XDG_CACHE_HOME=$work/cache
# Each word is quoted, because the folder of the sources may have spaces in its name.
build=$(printf '%q ' cc -std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off "${flags[@]}" game.c -o game "${libs[@]}")
expect 1 'version 5' "$hitreg" bisect git slide.hitlog v1..v8 --repo source --build-cmd "$build" --artifact game

c++ -std=c++17 -ffp-contract=off "${flags[@]}" "$here/dot.cpp" -o dot "${libs[@]}"
./dot record dot.hitlog
expect 0 '1 ok' "$hitreg" verify dot.hitlog --build ./dot
expect 0 'keeps the contract' "$hitreg" check ./dot dot.hitlog
echo "all right"
