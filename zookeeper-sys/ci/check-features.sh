#!/usr/bin/env bash
# Builds the crate in each way it can be linked and runs the tests that call the library.
# The source for `source` is ZOOKEEPER_SRC_DIR, or is fetched once into cargo's target directory.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

target=$(cargo metadata --format-version 1 --no-deps --offline |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')

if [[ -z ${ZOOKEEPER_SRC_DIR-} ]]; then
    ZOOKEEPER_SRC_DIR=$("$here/c-client-source.sh" "$target/c-client-source")
fi
export ZOOKEEPER_SRC_DIR

for features in '' buildtime-bindgen static source source,buildtime-bindgen tls,sasl; do
    echo "== zookeeper-sys, features: ${features:-none}"
    cargo test -q -p zookeeper-sys --features "$features" --test library
done

echo "== zookeeper-sys, feature tls: one OpenSSL"
# Headers for openssl-sys alone: the C client must be compiled with them, not with those of the system.
other=$target/another-openssl
rm -rf "$other" && mkdir -p "$other"/include/openssl
for name in opensslv opensslconf; do
    printf '#include_next <openssl/%s.h>\n' "$name" >"$other/include/openssl/$name.h"
done
echo '#error' >"$other/include/openssl/ssl.h"
lib=$(dirname "$(${CC:-cc} -print-file-name=libssl.so)")
if said=$(OPENSSL_INCLUDE_DIR=$other/include OPENSSL_LIB_DIR=$lib \
    cargo check -q -p zookeeper-sys --features tls --target-dir "$target/another-openssl" 2>&1) ||
    [[ $said != *'cannot compile'*"$other/include"* ]]; then
    printf '%s\n' "the C client was not compiled with the headers of openssl-sys" "$said" >&2
    exit 1
fi

echo "== all ways of linking work"
