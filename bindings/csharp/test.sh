#!/usr/bin/env bash
# Compiles the bindings, their tests and the example with Mono, and checks hitreg's results for their sessions.
#
#     cargo build && cargo build -p hitreg-capi
#     bindings/csharp/test.sh
#
# HITREG is the program, HITREG_LIB the folder of libhitreg_capi.so; both are in target/debug by default. Without Mono,
# the script installs it with apt-get, or skips the tests.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
hitreg=$(realpath "${HITREG:-$root/target/debug/hitreg}")
header=$root/crates/hitreg-capi/include
libs=${HITREG_LIB:-$root/target/debug}
# `cargo test` leaves the library in `deps`.
[ -f "$libs/libhitreg_capi.so" ] || libs=$libs/deps
for file in "$hitreg" "$libs/libhitreg_capi.so"; do
  [ -f "$file" ] || { echo "$file: there is no such file: run \`cargo build && cargo build -p hitreg-capi\`" >&2; exit 1; }
done
export LD_LIBRARY_PATH=$(realpath "$libs")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

has_mono() { command -v mcs >/dev/null && command -v mono >/dev/null; }
install_mono() { apt-get update && apt-get install -y --no-install-recommends mono-mcs mono-runtime; }
if ! has_mono && { ! install_mono >/dev/null 2>&1 || ! has_mono; }; then
  echo "skipped: C# bindings: Mono (mcs and mono) is missing, and apt-get cannot install it"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache

compile() { mcs -langversion:experimental -warnaserror "$@"; }
# program NAME ARGUMENTS…: compiles NAME.exe, and writes a script that runs it.
program() {
  compile -r:Hitreg.dll -r:System.Core.dll -out:"$1.exe" "${@:2}"
  printf '#!/bin/sh\nexec mono "$(dirname "$0")/%s.exe" "$@"\n' "$1" >"$1"
  chmod +x "$1"
}
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

compile -unsafe -target:library -out:Hitreg.dll "$here"/Hitreg/*.cs
program tests "$here"/Tests/*.cs
program game "$here/Example/Game.cs"
program game_bug -define:BUG "$here/Example/Game.cs"
# The program of the README.
awk '/^```csharp/ { inside = 1; next } /^```/ { inside = 0 } inside' "$here/README.md" >Dot.cs
program dot Dot.cs

# The header of the library: names, constants, sizes and offsets.
./tests program "$header/hitreg.h" >layout.c
cc -std=c11 -Wall -Werror -I "$header" layout.c -o layout
./layout >layout.txt
expect 0 '^3 passed, 0 failed' ./tests header "$header/hitreg.h" layout.txt
# The comparison notices a new function, constant and field.
sed 's/^hitreg_code hitreg_log_open/hitreg_code hitreg_log_forget(void);\n&/
     s/ *HITREG_HOW_LATE = 3/HITREG_HOW_LOST = 9, &/
     s/ *uint32_t rotate_mib;/&\n uint32_t rotate_ticks;/' "$header/hitreg.h" >changed.h
expect 1 'lack: hitreg_log_forget' ./tests header changed.h layout.txt
expect 1 'lack: lost = 9' ./tests header changed.h layout.txt
expect 1 'lack: rotateticks' ./tests header changed.h layout.txt
sed 's/^hitreg_options 24/hitreg_options 28/' layout.txt >changed.txt
expect 1 'size of hitreg_options' ./tests header "$header/hitreg.h" changed.txt

mkdir logs
expect 0 '^8 passed, 0 failed' ./tests run logs
expect 0 '300 casts' "$hitreg" info logs/évery.hitlog
expect 0 '1,00[01] ticks' "$hitreg" info logs/long-0002.hitlog
expect 0 'client of player 0' "$hitreg" info logs/side1.hitlog
expect 0 '1 player' "$hitreg" merge logs/side0.hitlog logs/side1.hitlog -o logs/merged.hitlog
expect 0 '"wide":0.1,"flag":true,"name":"弓"' "$hitreg" export logs/own.hittrace --table own
expect 0 '"hash":"0000000000000005"' "$hitreg" export logs/rows.hittrace --table ticks
expect 0 '"command":2,"tick":2,"how":"stood_in"' "$hitreg" export logs/played.hittrace --table executed
expect 0 '"command":4,.*"gun":"gun4"' "$hitreg" export logs/played.hittrace --table frames

./dot record dot.hitlog
expect 0 'keeps the contract' "$hitreg" check ./dot dot.hitlog
sed 's/new Description("dot")/&.Capability("step")/' Dot.cs >Steps.cs
program steps Steps.cs
expect 0 '^ +step$' "$hitreg" check ./steps dot.hitlog
expect 0 '1 ok' "$hitreg" verify dot.hitlog --build ./dot

expect 0 'records in' ./game record aim.hitlog
expect 0 'players +3' "$hitreg" info aim.hitlog
expect 0 'corrections' "$hitreg" info aim.hitlog
expect 0 'same' "$hitreg" diff aim.hitlog --a ./game --b ./game
expect 0 '1 ok' "$hitreg" verify aim.hitlog --build ./game
expect 0 'begins after tick [0-9]+ as the whole session goes on' "$hitreg" check ./game aim.hitlog
expect 1 'differs at tick [0-9]+ .*origin' "$hitreg" diff aim.hitlog --a ./game --b ./game --b-set aim.friction=5
# The optimisations of Mono's compiler do not change the floats.
sed 's/exec mono/exec mono -O=-all/' game >game_plain
chmod +x game_plain
expect 0 'same' "$hitreg" diff aim.hitlog --a ./game --b ./game_plain
expect 1 'differs' "$hitreg" verify aim.hitlog --build ./game_bug
expect 1 'differs at tick [0-9]+ .*health' "$hitreg" diff aim.hitlog --a ./game --b ./game_bug
expect 1 'First divergence: bodies, tick [0-9]+' "$hitreg" bisect ticks aim.hitlog --a ./game --b ./game_bug
expect 1 'cause: shot' "$hitreg" bisect ticks aim.hitlog --a ./game --b ./game_bug
# A smaller session with the same difference.
expect 0 'shows' "$hitreg" shrink aim.hitlog -o small.hitlog --a ./game --b ./game_bug --on hits
expect 1 'hits' "$hitreg" diff small.hitlog --a ./game --b ./game_bug --on hits
# A log of another game, and an unknown command.
expect 125 'the log is of `dot`, and this build plays `aim`' ./game replay dot.hitlog -o dot.hittrace
expect 125 'knows only: replay LOG -o TRACE' ./game step aim.hitlog
echo "all right"
