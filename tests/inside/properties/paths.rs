//! Paths of any kind, as we judge them, as a server does, and as the C client does.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use zklock_testing::Server;
use zklock_testing::wire::{Op, RawClient};

use crate::error::Code;
use crate::path::{parent, validate, validate_prefix};
use crate::raw::{self, Requests as _, WatchOn, Zhandle};

/// Characters of all kinds, those near the edges of what is forbidden above all.
fn character() -> impl Strategy<Value = char> {
    let edges = [
        0, 1, 0x1f, 0x20, 0x2e, 0x7e, 0x7f, 0x80, 0x9f, 0xa0, 0xd7ff, 0xe000, 0xf8ff, 0xf900,
        0xffef, 0xfff0, 0xffff, 0x1_0000, 0x1_f512, 0xf_0000, 0x10_ffff,
    ];
    let edges: Vec<char> = edges.into_iter().filter_map(char::from_u32).collect();
    prop_oneof![
        3 => prop::char::range('a', 'c'),
        1 => Just('.'),
        1 => prop::sample::select(edges),
        1 => any::<char>(),
    ]
}

fn path() -> impl Strategy<Value = String> {
    let name = vec(character(), 0..4).prop_map(String::from_iter);
    let name = prop_oneof![4 => name, 1 => "[a-c]{1,3}|\\.{0,3}"];
    let path = (any::<bool>(), vec(name, 1..4)).prop_map(|(rooted, names)| {
        let start = if rooted { "/" } else { "" };
        format!("{start}{}", names.join("/"))
    });
    prop_oneof![9 => path, 1 => "[./a]{0,5}"]
}

const BAD_ARGUMENTS: i32 = -8;
const PERSISTENT: i32 = 0;
const SEQUENTIAL: i32 = 2;

/// Asks for a node that anybody may use; gives the number of the request.
fn ask(server: &mut RawClient, path: &str, flags: i32) -> i32 {
    let text = |body: &mut Vec<u8>, text: &str| {
        body.extend(i32::try_from(text.len()).unwrap().to_be_bytes());
        body.extend(text.as_bytes());
    };
    let mut body = Vec::new();
    text(&mut body, path);
    text(&mut body, "");
    let (entries, all_permissions) = (1_i32, 31_i32);
    body.extend(entries.to_be_bytes());
    body.extend(all_permissions.to_be_bytes());
    text(&mut body, "world");
    text(&mut body, "anyone");
    body.extend(flags.to_be_bytes());
    server.submit(Op::Create, &body).unwrap()
}

fn is_refused(server: &mut RawClient, request: i32) -> bool {
    server.wait_reply(request).unwrap().0 == BAD_ARGUMENTS
}

/// A server looks for the parent first, so it judges one name at a time: each node on the way is
/// made, and the path is good if all of them were.
fn ask_all(server: &mut RawClient, path: &str) -> Vec<i32> {
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    ends.chain([path.len()]).map(|end| ask(server, &path[..end], PERSISTENT)).collect()
}

#[test]
fn a_server_judges_paths_as_we_do() {
    let server = Server::start().unwrap();
    let client = RefCell::new(RawClient::connect(server.addr(), Duration::from_secs(30)).unwrap());
    let batches = Config { cases: Config::default().cases.div_ceil(4), ..Config::default() };
    let judge = |paths: Vec<String>| {
        let client = &mut *client.borrow_mut();
        let asked: Vec<Vec<i32>> = paths.iter().map(|path| ask_all(client, path)).collect();
        for (path, requests) in paths.iter().zip(asked) {
            let mut refused = false;
            for request in requests {
                refused |= is_refused(client, request);
            }
            prop_assert_eq!(refused, validate(path).is_err(), "{:?}", path);
        }
        // A name that the server completes, in a directory that is there.
        let asked: Vec<i32> = paths.iter().map(|path| ask(client, path, SEQUENTIAL)).collect();
        for (path, request) in paths.iter().zip(asked) {
            let refused = is_refused(client, request);
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            // The server would take a `.` and complete it; the C client does not.
            let is_judged = validate(parent).is_ok() || parent.is_empty();
            if is_judged && !matches!(name, "." | "..") {
                prop_assert_eq!(refused, validate_prefix(path).is_err(), "{:?}", path);
            }
        }
        Ok(())
    };
    report(TestRunner::new(batches).run(&vec(path(), 16), judge));
}

#[test]
fn the_c_client_takes_every_path_that_we_take() {
    // Nobody listens there. It says what it thinks of a path before it sends anything.
    let config = raw::Config {
        in_order: false,
        hosts: "127.0.0.1:1".to_owned(),
        session_timeout: Duration::from_secs(1),
        session: None,
        tls: None,
        sasl: None,
    };
    let open = || Zhandle::open(&config, |_| {}).unwrap();
    let handle = RefCell::new(open());
    let judge = |path: String| {
        // Past some hundred requests they would wait here, unseen by the C client.
        if handle.borrow().in_flight() > 100 {
            handle.replace(open());
        }
        let refused = Arc::new(Mutex::new(false));
        let told = Arc::clone(&refused);
        let sink: raw::Sink<_> = Box::new(move |reply| {
            *told.lock().unwrap() |= reply.is_err_and(|code| code == Code::BAD_ARGUMENTS);
        });
        let terms = raw::Terms { deadline: None, turn: raw::Turn::InOrder };
        handle.borrow().exists(terms, &path, WatchOn::No, sink);
        let refused = *refused.lock().unwrap();
        prop_assert!(!refused || validate(&path).is_err(), "{:?}", path);
        Ok(())
    };
    let cases = Config { cases: Config::default().cases.saturating_mul(4), ..Config::default() };
    report(TestRunner::new(cases).run(&path(), judge));
}

fn report<T: std::fmt::Debug>(result: Result<(), TestError<T>>) {
    if let Err(error) = result {
        panic!("{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_judged_and_a_good_one_is_made_of_good_parents(path in prop_oneof![path(), ".*"]) {
        if validate(&path).is_err() {
            return Ok(());
        }
        prop_assert!(validate_prefix(&path).is_ok());
        match parent(&path) {
            Some(above) => {
                prop_assert!(validate(above).is_ok());
                let name = &path[above.len()..];
                prop_assert!(!name.trim_start_matches('/').contains('/'));
            }
            None => prop_assert_eq!(path, "/"),
        }
    }
}
