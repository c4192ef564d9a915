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
echo "== all ways of linking work"
