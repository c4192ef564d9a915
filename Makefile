# For everyone: server, lock-test, soak, bench, install, quick and test. simulate, spec, matrix, partitions, command,
# limits, queue, interop, mutants and sanitize are for those who change the locks or the queue; the others repeat one
# step of test.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.SILENT:
.PHONY: help server lock-test soak bench compare install uninstall deb package quick test test-all test-versions simulate spec matrix partitions command limits queue interop incidents mutants sanitize deps fmt clippy build unit doctests shell

# What the programs are given; ARGS on the command line or in the environment replaces it.
lock-test: ARGS ?= --threads 3 --strategy all
soak: ARGS ?= --minutes 2

help:
	echo 'make server                a real ZooKeeper server on this machine, to try programs with; prints its'
	echo "                           host string, Ctrl-C ends it. ARGS='--port 2181' chooses the port"
	echo 'make lock-test             threads contend for one lock on a real ZooKeeper server,'
	echo '                           under each strategy; installs what is missing'
	echo "make lock-test ARGS='...'  the same with arguments of your own, for example"
	echo "                           ARGS='--strategy queue --threads 16 --json' or ARGS=--help"
	echo 'make soak                  an ensemble, many client processes, and everything that can fail:'
	echo "                           judged by the servers' own log. ARGS='--minutes 10 --seed 7'"
	echo 'make bench                 measures the lock beside its peers: cycles, hand-offs, memory (some minutes);'
	echo "                           ARGS=--quick is a minute, ARGS='--write' is for docs/performance.md"
	echo 'make compare               all stores beside each other: it starts a server of each, and prints one table;'
	echo "                           ARGS='--picture stores.svg --seconds 10 --threads 1,16'"
	echo 'make install PREFIX=DIR    the command zklock, the C library and its headers into DIR (/usr/local); with'
	echo '                           STORES="sqlite redis postgres mysql" both know these beside ZooKeeper; knows'
	echo '                           DESTDIR, LIBDIR, INCLUDEDIR, PROFILE, COMMAND=no: scripts/install-c explains them'
	echo 'make uninstall PREFIX=DIR  takes away exactly what install put there'
	echo 'make deb                   Debian packages of all that, into target/deb; scripts/deb-test tries them in a chroot'
	echo 'make package               the crates as they are published, each built from what is packed'
	echo 'make quick                 the tests that find most, in a minute once they are built; says what it leaves out'
	echo 'make test                  the whole suite, stopping at the first step that fails; ends with a table of times'
	echo 'make test-all              the same with all cases and the long tests (an hour)'
	echo 'make test-versions         locks, recipes, the client, lock_test and a soak on several versions of ZooKeeper,'
	echo "                           which it fetches; ARGS='3.9.3' or ARGS=--write (half an hour)"
	echo 'make simulate              the acquire loop under simulated servers: all schedules of a few'
	echo '                           contenders, a million random ones of many (SCHEDULES=, SEED=)'
	echo 'make spec                  explores the specification of the locks with spin, in every state, and without each'
	echo "                           assumption until something goes wrong (ARGS='margin own-claim' for some; ARGS=--help)"
	echo 'make matrix                the step-fault matrix with all its pairs: a second fault at each kind of step'
	echo "                           in the recovery from a first (CASE='queue/give up' for a part of it)"
	echo 'make partitions            leaders that stand still or are cut off while one client holds and another'
	echo '                           waits: ROUNDS=50 of each scenario, at several session timeouts (an hour)'
	echo 'make command               zklock run: every fault that could let a command outlive its lock, ROUNDS=50'
	echo '                           times each (half an hour)'
	echo 'make limits                thousands of waiters, locks, clients, requests, watches: what each costs'
	echo 'make queue                 ELEMENTS=20000 through a queue while servers and clients are killed, and'
	echo '                           the queue is deleted whenever it is empty (some minutes)'
	echo 'make incidents             incidents that became known by name, replayed on real servers'
	echo 'make interop               locks of other libraries on one path with ours: who waits for whom, and whether'
	echo '                           increments are lost in ROUNDS=5000 acquisitions (a minute or two)'
	echo "                           LIBRARIES='kazoo curator' for some; scripts/interop --help names them"
	echo 'make mutants               plants one bug after the other and says which the tests find: those of'
	echo "                           tests/mutants/list, or ARGS='generic src/lock --minutes 30'; ARGS=--help"
	echo 'make sanitize              valgrind, AddressSanitizer and ThreadSanitizer on all that touches the'
	echo "                           C client (SANITIZERS='memory thread', TESTS='raw_floor client')"
	echo 'make STEP                  one step of it: fmt clippy build unit doctests shell'
	echo 'make deps                  only install what the suite needs'

# `value` leaves a $ in ARGS to the shell, which also reads its quotes.
server:
	scripts/server $(value ARGS)

lock-test:
	scripts/lock-test $(value ARGS)

soak:
	scripts/soak $(value ARGS)

bench:
	scripts/bench $(value ARGS)

compare:
	scripts/compare $(value ARGS)

# Reads its settings from the environment, to which make adds those on its command line.
install uninstall:
	scripts/install-c $@

deb:
	scripts/deb

# Those that are published.
package:
	cargo package -p zookeeper-sys -p zklock-testing -p zklock -p zklock-cli

quick:
	scripts/quick

test:
	scripts/test

test-all:
	ZKLOCK_TEST=all scripts/test

test-versions:
	scripts/versions $(value ARGS)

# How many random schedules, and the seed of the first.
SCHEDULES ?= 1000000
SEED ?= 0

simulate:
	ZKLOCK_SCHEDULES=$(SCHEDULES) ZKLOCK_FIRST_SEED=$(SEED) scripts/simulate

spec:
	scripts/spec $(value ARGS)

# The beginning of the names of the cases.
CASE ?=

matrix:
	ZKLOCK_CASE="$(CASE)" scripts/matrix

# How many of each scenario.
partitions command: ROUNDS ?= 50

partitions:
	ZKLOCK_ROUNDS=$(ROUNDS) scripts/partitions

command:
	ZKLOCK_ROUNDS=$(ROUNDS) scripts/command

# TESTS='crowd' chooses among them.
limits:
	scripts/limits $(TESTS)

# How many elements.
ELEMENTS ?= 20000

queue:
	ZKLOCK_QUEUE_ELEMENTS=$(ELEMENTS) scripts/queue

# How many acquisitions in all, and among which libraries.
interop: ROUNDS ?= 5000
interop:
	ZKLOCK_ROUNDS=$(ROUNDS) scripts/interop $(LIBRARIES)

incidents:
	scripts/install-deps test >&2
	bash -c 'source scripts/cargo-env; cargo test --workspace "$${features[@]}" --test defects incidents'

mutants: ARGS ?= planted
mutants:
	scripts/mutants $(value ARGS)

# Which of them, and the test crates that they run: all that scripts/sanitize has, unless given.
sanitize:
	TESTS="$(TESTS)" scripts/sanitize $(SANITIZERS)

deps fmt clippy build unit doctests shell:
	scripts/test $@
