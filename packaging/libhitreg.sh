#!/usr/bin/env bash
# Installs libhitreg into a folder, as a prebuilt package for C and C++: the header, both libraries, a pkg-config file and
# a CMake package. The folder can be moved afterwards.
#     packaging/libhitreg.sh target/release /opt/hitreg
set -euo pipefail
[ $# = 2 ] || { echo "usage: libhitreg.sh BUILD PREFIX" >&2; exit 2; }
build=$1 prefix=$2
here=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -1)
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/hitreg"
cp "$here/crates/hitreg-capi/include/hitreg.h" "$prefix/include/"
cp "$build/libhitreg_capi.a" "$prefix/lib/libhitreg.a"
for library in so dylib; do
  if [ -e "$build/libhitreg_capi.$library" ]; then cp "$build/libhitreg_capi.$library" "$prefix/lib/libhitreg.$library"; fi
done
case $(uname -s) in
  Darwin) system="-liconv" ;;
  *) system="-lpthread -ldl -lm" ;;
esac
cat >"$prefix/lib/pkgconfig/hitreg.pc" <<END
prefix=\${pcfiledir}/../..
Name: hitreg
Description: Records sessions of action games for hitreg
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lhitreg
Libs.private: $system
END
sed "s/@VERSION@/$version/" "$here/packaging/hitreg-config-version.cmake.in" >"$prefix/lib/cmake/hitreg/hitreg-config-version.cmake"
sed "s/@SYSTEM@/${system//-l/}/" "$here/packaging/hitreg-config.cmake.in" >"$prefix/lib/cmake/hitreg/hitreg-config.cmake"
