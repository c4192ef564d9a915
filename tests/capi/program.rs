//! Runs a program, and does to the server and to its network what it asks for.

use std::time::Duration;

use test_support::{shared, unused_path};
use zklock::Code;
use zklock_testing::wire::RawClient;
use zklock_testing::{Proxy, expire_session};

use super::build::{self, Mode};
use super::session_password::password_of;

/// On the server itself: a program's network is not its own.
fn client() -> RawClient {
    RawClient::connect(shared().addr(), Duration::from_secs(30)).unwrap()
}

/// The shared server as a program sees it: through a proxy, below a path that no other program uses.
pub struct World {
    proxy: Proxy,
    chroot: String,
}

pub fn run(name: &str, mode: Mode) {
    let program = build::program(name, mode);
    let world = World::new();
    // Under valgrind one thread runs at a time, slowly, and a session must survive that.
    let session_timeout_ms = match (mode, name) {
        (Mode::Valgrind | Mode::WithoutLeaks | Mode::Shutdown, _) => 20_000,
        (_, "clock") => 8_000,
        _ => 10_000,
    };
    let arguments = world.arguments(session_timeout_ms);
    let mut process = build::start(&program, mode, &arguments);
    while let Some(line) = process.hear() {
        match line.trim_end().strip_prefix("ask ") {
            Some(wish) => {
                let answer = world.grant(wish);
                process.tell(&answer);
            }
            None => println!("{line}"),
        }
    }
    let status = process.end();
    assert!(status.success(), "{name} {mode:?}: {status}");
}

impl World {
    pub fn new() -> World {
        let proxy = Proxy::start(shared().addr()).unwrap();
        let world = World { proxy, chroot: unused_path() };
        client().create(&world.chroot, b"").unwrap();
        world
    }

    /// What each program is given.
    pub fn arguments(&self, session_timeout_ms: u32) -> [String; 2] {
        [self.proxy.hosts() + &self.chroot, session_timeout_ms.to_string()]
    }

    /// Does what a program asks for; gives the answer.
    pub fn grant(&self, wish: &str) -> String {
        let mut words = wish.split(' ');
        let what = words.next().unwrap_or_default();
        let about = words.next().unwrap_or_default();
        let path = format!("{}{about}", self.chroot);
        match what {
            "cut" => self.proxy.cut(),
            "refuse" => self.proxy.refuse(),
            "heal" => self.proxy.heal(),
            "reset" => self.proxy.reset_all(),
            "slow" => self.proxy.set_latency(Duration::from_millis(about.parse().unwrap())),
            "expire" => {
                let id = about.parse().unwrap();
                expire_session(&shared().hosts(), id, &password_of(id)).unwrap();
            }
            "create" => drop(client().create(&path, b"").unwrap()),
            "delete" => client().delete(&path).unwrap(),
            "set" => {
                let set = client().set_data(&path, b"theirs");
                return set.map_or_else(|error| error.to_string(), |_| "done".to_owned());
            }
            "get" => {
                let (data, _) = client().get_data(&path).unwrap();
                return String::from_utf8(data).unwrap();
            }
            "exists" => {
                let exists = client().exists(&path).unwrap().is_some();
                return if exists { "yes" } else { "no" }.to_owned();
            }
            "requests" => {
                let id: i64 = about.parse().unwrap();
                let connections = shared().connections().unwrap();
                let of_it = connections.iter().filter(|connection| connection.session_id == id);
                return of_it.map(|connection| connection.received).sum::<u64>().to_string();
            }
            "children" => {
                let names = match client().children(&path) {
                    // Not made yet, or a container that the server has removed because it was empty.
                    Err(error) if error.code() == Some(Code::NO_NODE.as_raw()) => Vec::new(),
                    names => names.unwrap(),
                };
                return names.len().to_string();
            }
            other => panic!("the program asks for {other:?}"),
        }
        "done".to_owned()
    }
}
