//! The libraries, and how a program with a lock of each is started.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use test_support::Process;

/// A lock of some library that can stand on one path with one of ours.
#[derive(Clone, Copy)]
pub struct Library {
    /// As README.md and the results name it.
    pub name: &'static str,
    peer: Peer,
    /// Which of the library's locks it is, as its program knows it.
    lock: &'static str,
    /// Which of ours stands against it.
    ours: &'static str,
    pub waits_for_ours: bool,
    /// All do, but readers for readers, and none for what is not ephemeral.
    pub ours_wait: bool,
    /// Whether it waits for each of the others of which this is said.
    pub in_one_line: bool,
    /// What the command `zklock` takes its claims for.
    pub recognised: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Zklock,
    ZookeeperClient,
    Kazoo,
    Curator,
    GoZookeeper,
    WriteLock,
}

impl Peer {
    /// As ZKLOCK_INTEROP names it.
    fn name(self) -> &'static str {
        match self {
            Peer::Zklock => "zklock",
            Peer::ZookeeperClient => "zookeeper-client",
            Peer::Kazoo => "kazoo",
            Peer::Curator => "curator",
            Peer::GoZookeeper => "go-zookeeper",
            Peer::WriteLock => "write-lock",
        }
    }
}

pub const OURS: Library = Library {
    name: "zklock",
    peer: Peer::Zklock,
    lock: "lock",
    ours: "lock",
    waits_for_ours: true,
    ours_wait: true,
    in_one_line: true,
    recognised: "zklock",
};

const CURATOR: Library = Library {
    name: "Curator",
    peer: Peer::Curator,
    recognised: "Curator or zookeeper-client",
    ..OURS
};

const KAZOO: Library = Library {
    name: "kazoo, given our pattern",
    peer: Peer::Kazoo,
    in_one_line: false,
    recognised: "kazoo",
    ..OURS
};

const GO_ZOOKEEPER: Library =
    Library { name: "go-zookeeper", peer: Peer::GoZookeeper, recognised: "go-zookeeper", ..OURS };

const WRITE_LOCK: Library = Library {
    name: "ZooKeeper's Java recipe",
    peer: Peer::WriteLock,
    in_one_line: false,
    recognised: "ZooKeeper's Java recipe",
    ..OURS
};

const ALL: [Library; 16] = [
    Library { name: "zookeeper-client", peer: Peer::ZookeeperClient, ..CURATOR },
    CURATOR,
    Library { name: "Curator, write", lock: "write", ours: "write", in_one_line: false, ..CURATOR },
    Library {
        name: "Curator, read; ours write",
        lock: "read",
        ours: "write",
        in_one_line: false,
        ..CURATOR
    },
    Library { name: "Curator, read; ours too", lock: "read", ..together(CURATOR) },
    GO_ZOOKEEPER,
    Library { name: "kazoo, as it comes", lock: "default", waits_for_ours: false, ..KAZOO },
    KAZOO,
    Library { name: "kazoo, write, given our patterns", lock: "write", ours: "write", ..KAZOO },
    Library { name: "kazoo, read, given one; ours write", lock: "read", ours: "write", ..KAZOO },
    Library { name: "kazoo, read, given one; ours too", lock: "read", ..together(KAZOO) },
    WRITE_LOCK,
    Library {
        name: "zookeeper-client; ours for all",
        peer: Peer::ZookeeperClient,
        ..for_all(CURATOR)
    },
    Library { name: "Curator; ours for all", ..for_all(CURATOR) },
    Library { name: "kazoo, as it comes; ours for all", lock: "default", ..for_all(KAZOO) },
    Library { name: "Java recipe; ours for all", ..for_all(WRITE_LOCK) },
];

/// It fails at names that it can't read.
pub const GO_BESIDE_ALL: Library = for_all(GO_ZOOKEEPER);

/// Its claims outlive their sessions, which is what data does.
pub const KAZOO_WITHOUT_SESSION: Library =
    Library { name: "kazoo, ephemeral=False", lock: "persistent", ours_wait: false, ..KAZOO };

/// Beside a lock of ours that is for all libraries.
const fn for_all(library: Library) -> Library {
    Library { ours: "all", in_one_line: false, ..library }
}

/// Readers hold together.
const fn together(library: Library) -> Library {
    Library { ours: "read", waits_for_ours: false, ours_wait: false, in_one_line: false, ..library }
}

/// Those that ZKLOCK_INTEROP names, or those that need no more than `make test` installs.
pub fn chosen() -> Vec<Library> {
    let named = named();
    let peers =
        [Peer::ZookeeperClient, Peer::Kazoo, Peer::Curator, Peer::GoZookeeper, Peer::WriteLock];
    for name in named.split_whitespace() {
        let known = peers.map(Peer::name);
        assert!(known.contains(&name), "ZKLOCK_INTEROP names {name}; of: {}", known.join(" "));
    }
    ALL.into_iter().filter(Library::is_chosen).collect()
}

fn named() -> String {
    env::var("ZKLOCK_INTEROP").unwrap_or_else(|_| "zookeeper-client kazoo".to_owned())
}

impl Library {
    pub fn is_chosen(&self) -> bool {
        named().split_whitespace().any(|name| name == self.peer.name())
    }

    /// Whether each of them holds alone, also among themselves.
    pub fn is_exclusive(&self) -> bool {
        self.lock != "read"
    }

    /// Whether it knows no readers and writers.
    pub fn is_mutex(&self) -> bool {
        self.ours == "lock"
    }

    /// Whether those of ours beside it are for all libraries.
    pub fn is_beside_all(&self) -> bool {
        self.ours == "all"
    }

    /// Whether it excludes Curator, as zookeeper-client does.
    pub fn is_of_curators_line(&self) -> bool {
        matches!(self.peer, Peer::Curator | Peer::ZookeeperClient)
    }

    /// What stands against it.
    pub fn ours(&self) -> Library {
        Library { lock: self.ours, ..OURS }
    }

    /// Starts a program with a lock on the path; gives it and the library's version.
    pub fn start(&self, hosts: &str, path: &str, session_timeout: Duration) -> (Process, String) {
        self.start_to_count(hosts, path, &counter(path, 0), session_timeout)
    }

    /// As [`start`](Library::start), with that counter.
    pub fn start_to_count(
        &self,
        hosts: &str,
        path: &str,
        counter: &str,
        session_timeout: Duration,
    ) -> (Process, String) {
        let mut command = self.peer.program();
        command.args([hosts, path, counter]);
        command.args([&session_timeout.as_millis().to_string(), self.lock]);
        let mut process = Process::start(command.stderr(Stdio::inherit()));
        let ready = process.hear().unwrap_or_else(|| panic!("{}: does not connect", self.name));
        let version = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{ready}"));
        (process, version.to_owned())
    }
}

/// A counter that the lock on that path protects.
pub fn counter(path: &str, number: usize) -> String {
    format!("{path}-counter-{number}")
}

impl Peer {
    fn program(self) -> Command {
        match self {
            Peer::Zklock | Peer::ZookeeperClient => {
                let programs = env::current_exe().unwrap();
                let programs = programs.ancestors().nth(2).unwrap();
                Command::new(programs.join(format!("peer-{}", self.name())))
            }
            Peer::Kazoo => {
                let program = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/kazoo_peer.py");
                let mut command = Command::new(python_with_kazoo());
                command.arg(program);
                command
            }
            Peer::GoZookeeper => Command::new(built().join("peer-go")),
            Peer::Curator => java("CuratorPeer"),
            Peer::WriteLock => java("WriteLockPeer"),
        }
    }
}

/// Where scripts/interop has put what it builds.
fn built() -> PathBuf {
    let built = env::var_os("ZKLOCK_INTEROP_BUILT");
    built.expect("run scripts/interop, which builds the programs in other languages").into()
}

fn java(class: &str) -> Command {
    let mut command = Command::new("java");
    let class_path =
        env::var("ZKLOCK_INTEROP_JARS").expect("scripts/interop says where the jars are");
    let class_path = format!("{}:{class_path}", built().join("java").display());
    // The clients are many, and none of them works much.
    command.args(["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
    command.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", &class_path, class]);
    command
}

/// Debian's own Python has Debian's kazoo, also where another one is first on the PATH.
fn python_with_kazoo() -> PathBuf {
    let named = env::var_os("ZKLOCK_INTEROP_PYTHON").map(PathBuf::from);
    let candidates = named.into_iter().chain(["python3", "/usr/bin/python3"].map(PathBuf::from));
    let has_kazoo = |python: &Path| {
        let mut command = Command::new(python);
        let import = command.args(["-c", "import kazoo"]).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success())
    };
    candidates.into_iter().find(|python| has_kazoo(python)).unwrap_or_else(|| {
        panic!("no python3 has kazoo: scripts/install-deps test installs it, or pip install kazoo")
    })
}
