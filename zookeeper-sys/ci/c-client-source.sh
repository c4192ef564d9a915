#!/usr/bin/env bash
# Prepares the C client's source for the feature `source`: DIR/zookeeper-client-c, and prints its
# path, the value for ZOOKEEPER_SRC_DIR. Done once; later calls only print. Needs no root, and
# leaves the system's apt configuration as it is.
set -euo pipefail

if (($# != 1)) || [[ $1 == -* ]]; then
    echo "usage: ci/c-client-source.sh DIR" >&2
    exit 2
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)
tree=$dir/zookeeper-client-c
if [[ -e $tree ]]; then
    echo "$tree"
    exit 0
fi

fail() {
    printf 'c-client-source.sh: %s\n' "$@" >&2
    exit 1
}

# require COMMAND PACKAGE
require() {
    command -v "$1" >/dev/null || fail "$1 is missing (Debian: apt-get install $2)"
}
require apt-get apt
require dpkg-source dpkg-dev

java=java
[[ -n ${JAVA_HOME-} && -x $JAVA_HOME/bin/java ]] && java=$JAVA_HOME/bin/java
require "$java" default-jre-headless

# The jute compiler is in the server's jars, which a release has in lib.
jars=/usr/share/java
if [[ ! -e $jars/zookeeper-jute.jar && -n ${ZOOKEEPER_HOME-} ]]; then
    jars=$ZOOKEEPER_HOME/lib
fi
jars=$(find -L "$jars" -maxdepth 1 -name 'zookeeper-jute*.jar' 2>/dev/null | sort | head -n 1)
[[ -n $jars ]] || fail "zookeeper-jute.jar is missing (Debian: apt-get install libzookeeper-java," \
    "elsewhere: set ZOOKEEPER_HOME to an unpacked release)"

work=$(mktemp -d "$dir/unfinished.XXXXXX")
trap 'rm -rf "$work"' EXIT
exec 3>&1 >&2

# apt STATE LIST ARGS...: apt-get with its state, its cache and its list of sources in $work.
# LIST is empty for the system's own sources.
mkdir -p "$work"/{none,cache/archives/partial}
apt() {
    local state=$work/$1 list=$2 sources=()
    shift 2
    if [[ -n $list ]]; then
        sources=(-o "Dir::Etc::sourcelist=$list" -o "Dir::Etc::sourceparts=$work/none")
    fi
    mkdir -p "$state/lists/partial"
    # The sandbox user could not enter $work; signatures are checked all the same.
    apt-get -q -o APT::Sandbox::User=root -o "Dir::State=$state" -o "Dir::Cache=$work/cache" \
        -o Dir::State::status=/var/lib/dpkg/status -o Acquire::Languages=none \
        "${sources[@]}" "$@"
}

# The distribution's own archives, whichever form its list of sources has; deb-src of each.
# shellcheck disable=SC2016 # apt expands these
fields='$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)'
archives() { "$@" indextargets --format "$fields" 'Created-By: Packages' | grep -E '^(Debian|Ubuntu)\|'; }
if ! found=$(archives apt-get); then
    # Only a list that was fetched tells whose it is.
    apt binaries '' update
    found=$(archives apt binaries '') || fail "apt knows no archive of Debian or Ubuntu"
fi
while IFS='|' read -r origin uri release component; do
    keyring=/usr/share/keyrings/${origin,,}-archive-keyring.gpg
    options=
    [[ -e $keyring ]] && options="[signed-by=$keyring] "
    echo "deb-src $options$uri $release $component"
done <<<"$found" | sort -u >"$work/src.list"

apt sources "$work/src.list" update
(cd "$work" && apt sources "$work/src.list" source zookeeper)

unpacked=$(find "$work" -maxdepth 1 -type d -name 'zookeeper-[0-9]*')
client=$unpacked/zookeeper-client/zookeeper-client-c
jute=$unpacked/zookeeper-jute/src/main/resources/zookeeper.jute
[[ -d $client && -e $jute ]] || fail "the source package is not laid out as expected"

mkdir -p "$client/generated"
(cd "$client/generated" && "$java" -cp "$jars" org.apache.jute.compiler.generated.Rcc -l c "$jute")
[[ -s $client/generated/zookeeper.jute.c ]] || fail "the jute compiler made no zookeeper.jute.c"

# Last, so that the tree is there only when it is whole. Another call may have been faster.
mv -T "$client" "$tree" || [[ -e $tree/generated/zookeeper.jute.c ]]
echo "$tree" >&3
