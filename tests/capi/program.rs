//! Runs a program against a server and a proxy of its own, and does what it asks for.

use std::time::Duration;

use zklock_testing::wire::RawClient;
use zklock_testing::{Proxy, Server, expire_session};

use super::build::{self, Mode};
use super::process::Process;
use super::session_password::password_of;

struct World {
    server: Server,
    proxy: Proxy,
}

pub fn run(name: &str, mode: Mode) {
    let directory = tempfile::tempdir().unwrap();
    let program = build::program(name, mode, directory.path());
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let world = World { server, proxy };
    // Under valgrind one thread runs at a time, slowly.
    let session_timeout_ms = if mode == Mode::Valgrind { 8_000 } else { 4_000 };
    let arguments = [world.proxy.hosts(), session_timeout_ms.to_string()];
    let mut process = Process::start(&program, mode, &arguments);
    while let Some(line) = process.hear() {
        match line.strip_prefix("ask ") {
            Some(wish) => {
                let answer = world.grant(wish);
                process.answer(&answer);
            }
            None => println!("{line}"),
        }
    }
    let status = process.end();
    assert!(status.success(), "{name} {mode:?}: {status}");
}

impl World {
    fn grant(&self, wish: &str) -> String {
        // On the server itself: the program's network is not its own.
        let client = || RawClient::connect(self.server.addr(), Duration::from_secs(30)).unwrap();
        let mut words = wish.split(' ');
        let what = words.next().unwrap_or_default();
        let about = words.next().unwrap_or_default();
        match what {
            "cut" => self.proxy.cut(),
            "heal" => self.proxy.heal(),
            "expire" => {
                let id = about.parse().unwrap();
                expire_session(&self.server.hosts(), id, &password_of(id)).unwrap();
            }
            "create" => drop(client().create(about, b"").unwrap()),
            "delete" => client().delete(about).unwrap(),
            "get" => {
                let (data, _) = client().get_data(about).unwrap();
                return String::from_utf8(data).unwrap();
            }
            "children" => return client().children(about).unwrap().len().to_string(),
            other => panic!("the program asks for {other:?}"),
        }
        "done".to_owned()
    }
}
