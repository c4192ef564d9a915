//! A real server's log, read here and by ZooKeeper itself.

use std::path::Path;

use zklock::Client;
use zklock::zookeeper::{CreateMode, Op};
use zklock_testing::Server;

use super::*;

/// A server whose log holds every sort of transaction that a soak makes.
fn server() -> Server {
    let server = Server::start().unwrap();
    let client = Client::connect(&server.hosts()).wait().unwrap();
    client.create("/a", b"data", CreateMode::Persistent).wait().unwrap();
    client.create("/a/c", b"", CreateMode::Container).wait().unwrap();
    client.create("/a/e-", b"", CreateMode::EphemeralSequential).wait().unwrap();
    client.set("/a", b"more", None).wait().unwrap();
    // Refused, but logged all the same.
    client.delete("/a", None).wait().unwrap_err();
    client.multi(&[Op::check("/a"), Op::set("/a", "most")]).wait().unwrap();
    client.multi(&[Op::check("/none"), Op::set("/a", "never")]).wait().unwrap_err();
    client.delete("/a/c", None).wait().unwrap();
    client.close().wait().unwrap();
    // A session that does nothing.
    let other = Client::connect(&server.hosts()).wait().unwrap();
    other.close().wait().unwrap();
    server
}

fn logs(server: &Server) -> PathBuf {
    server.data_dir().join("version-2")
}

#[test]
fn every_sort_of_transaction_is_understood() {
    let server = server();
    let agreed = read_ensemble(&[logs(&server)]).unwrap();
    // What is in none of the records is where the digest begins.
    assert_eq!((agreed.confirmed, agreed.disputes), (3, vec![]));
    let changes: Vec<Change> = agreed.txns.into_iter().flat_map(|txn| txn.changes).collect();
    let create = |path: &str, ephemeral, data: &[u8]| Change::Create {
        path: path.to_owned(),
        ephemeral,
        data: data.to_vec(),
    };
    let set =
        |data: &[u8], version| Change::Set { path: "/a".to_owned(), data: data.to_vec(), version };
    let ours = [
        create("/a", false, b"data"),
        create("/a/c", false, b""),
        create("/a/e-0000000001", true, b""),
        set(b"more", 1),
        Change::Check { path: "/a".to_owned() },
        set(b"most", 2),
        Change::Delete { path: "/a/c".to_owned() },
        Change::Close { paths: vec!["/a/e-0000000001".to_owned()] },
        // Each close is confirmed by a session of its own.
        Change::Close { paths: vec![] },
        Change::Close { paths: vec![] },
        Change::Close { paths: vec![] },
    ];
    let ours: Vec<&Change> = ours.iter().collect();
    let found: Vec<&Change> =
        changes.iter().filter(|it| !matches!(it, Change::Open { .. })).collect();
    assert_eq!(found, ours);
}

#[test]
fn a_torn_end_is_left_out_and_the_rest_is_read() {
    let server = server();
    let file = files(&logs(&server)).unwrap().remove(0);
    let whole = super::file::read(&file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let torn = directory.path().join("log.1");
    for cut in [used - 3, used + 1] {
        std::fs::write(&torn, &bytes[..cut]).unwrap();
        let read = super::file::read(&torn).unwrap();
        let complete = cut > used;
        assert_eq!(read.len(), whole.len() - usize::from(!complete));
    }
    let mut wrong = bytes;
    wrong[used - 2] ^= 1;
    std::fs::write(&torn, wrong).unwrap();
    assert_eq!(super::file::read(&torn).unwrap().len(), whole.len() - 1);
}

#[test]
fn zookeeper_reads_the_same_out_of_the_same_file() {
    let server = server();
    let file = files(&logs(&server)).unwrap().remove(0);
    let ours: Vec<String> = super::file::read(&file)
        .unwrap()
        .iter()
        .map(|txn| format!("session {:#x} zxid {:#x}", txn.session, txn.zxid))
        .collect();
    let theirs = told_by_zookeeper(&server, &file);
    assert!(ours.len() >= 9, "{ours:?}");
    assert_eq!(ours, theirs);
}

/// What ZooKeeper's own tool prints, of each line what all versions agree on.
fn told_by_zookeeper(server: &Server, file: &Path) -> Vec<String> {
    let tool = "org.apache.zookeeper.server.persistence.TxnLogToolkit";
    let output = server.tool(tool).arg("-d").arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| {
        let after = |word: &str| line.split(word).nth(1)?.split_whitespace().next();
        Some(format!("session {} zxid {}", after("session ")?, after("zxid ")?))
    };
    text.lines().filter_map(line).collect()
}
