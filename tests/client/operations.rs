//! Every operation, as a server that is well answers it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_lite::future::block_on;
use test_support::{Bench, TIMEOUT, alone, connect, eventually, options, session_id, shared};
use zklock::Code;
use zklock::zookeeper::{Acl, CreateMode, Permissions, Watched};
use zklock_testing::{Action, Rule, wire};

#[test]
fn a_persistent_znode_is_created_with_its_stat() {
    let (client, path) = alone();
    let node = format!("{path}/node");
    let created = client.create(&node, b"data", CreateMode::Persistent).wait().unwrap();
    assert_eq!(created.path, node);
    assert_eq!((created.stat.data_length, created.stat.ephemeral_owner), (4, 0));
    assert!(!created.stat.is_ephemeral());
    assert!(created.stat.czxid > 0);
    assert_eq!(client.exists(&node).wait().unwrap(), Some(created.stat));
}

#[test]
fn an_ephemeral_znode_names_its_owner_and_goes_with_it() {
    let (client, path) = alone();
    let owner = connect(shared());
    let node = format!("{path}/ephemeral");
    let created = owner.create(&node, b"", CreateMode::Ephemeral).wait().unwrap();
    assert_eq!(created.stat.ephemeral_owner, session_id(&owner));
    assert!(created.stat.is_ephemeral());
    let child = format!("{node}/child");
    let error = client.create(&child, b"", CreateMode::Persistent).wait().unwrap_err();
    assert_eq!(error.code(), Code::NO_CHILDREN_FOR_EPHEMERALS);
    owner.close().wait().unwrap();
    assert_eq!(client.exists(&node).wait().unwrap(), None);
}

#[test]
fn sequential_znodes_get_growing_numbers() {
    let (client, path) = alone();
    let create =
        |name: &str, mode| client.create(&format!("{path}/{name}"), b"", mode).wait().unwrap();
    let modes = [
        (CreateMode::PersistentSequential, false),
        (CreateMode::EphemeralSequential, true),
        (CreateMode::PersistentSequentialWithTtl(Duration::from_secs(3_600)), false),
    ];
    for (number, (mode, ephemeral)) in modes.into_iter().enumerate() {
        let created = create("n-", mode);
        assert_eq!(created.path, format!("{path}/n-{number:010}"));
        assert_eq!(created.stat.is_ephemeral(), ephemeral, "{mode:?}");
    }
    // The name may be empty, and the number is all there is.
    assert_eq!(create("", CreateMode::PersistentSequential).path, format!("{path}/0000000003"));
}

#[test]
fn containers_and_znodes_with_a_time_to_live_are_created_and_are_not_ephemeral() {
    let (client, path) = alone();
    for mode in [CreateMode::Container, CreateMode::PersistentWithTtl(Duration::from_secs(3_600))] {
        let node = format!("{path}/node");
        let created = client.create(&node, b"x", mode).wait().unwrap();
        assert_eq!(created.path, node);
        assert!(!created.stat.is_ephemeral(), "{mode:?}");
        client.create(&format!("{node}/child"), b"", CreateMode::Persistent).wait().unwrap();
        client.delete(&format!("{node}/child"), None).wait().unwrap();
        client.delete(&node, None).wait().unwrap();
    }
}

#[test]
fn a_time_to_live_that_no_server_can_keep_is_refused() {
    let (client, path) = alone();
    for ttl in [Duration::ZERO, Duration::from_micros(999), Duration::from_millis(1 << 40)] {
        let mode = CreateMode::PersistentWithTtl(ttl);
        let error = client.create(&format!("{path}/ttl"), b"", mode).wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{ttl:?}");
    }
}

#[test]
fn a_version_guards_writes_and_deletions() {
    let (client, path) = alone();
    let stat = client.set(&path, b"one", None).wait().unwrap();
    assert_eq!((stat.version, stat.data_length), (1, 3));
    let stat = client.set(&path, b"two", Some(1)).wait().unwrap();
    assert_eq!(stat.version, 2);
    let error = client.set(&path, b"three", Some(1)).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_VERSION);
    assert_eq!(error.to_string(), format!("set {path}: version conflict"));
    let znode = client.get(&path).wait().unwrap();
    assert_eq!((znode.data, znode.stat), (b"two".to_vec(), stat));
    let error = client.delete(&path, Some(7)).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_VERSION);
    client.delete(&path, Some(2)).wait().unwrap();
    assert_eq!(client.exists(&path).wait().unwrap(), None);
    assert!(client.delete(&path, None).wait().unwrap_err().is_no_node());
}

#[test]
fn data_of_any_bytes_comes_back_as_it_was() {
    let (client, path) = alone();
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let large = vec![7; 1_000_000];
    for data in [&b""[..], &[0], &bytes, &large] {
        client.set(&path, data, None).wait().unwrap();
        assert!(client.get(&path).wait().unwrap().data == data, "{} bytes", data.len());
    }
}

#[test]
fn children_are_told_by_name_and_protect_their_parent() {
    let (client, path) = alone();
    assert_eq!(client.children(&path).wait().unwrap().names, Vec::<String>::new());
    for name in ["b", "a", "\u{e4}\u{4e2d}", "with space"] {
        client.create(&format!("{path}/{name}"), b"", CreateMode::Persistent).wait().unwrap();
    }
    let mut listed = client.children(&path).wait().unwrap();
    assert_eq!((listed.stat.num_children, listed.stat.cversion), (4, 4));
    let names = &mut listed.names;
    names.sort();
    assert_eq!(*names, ["a", "b", "with space", "\u{e4}\u{4e2d}"]);
    assert_eq!(client.delete(&path, None).wait().unwrap_err().code(), Code::NOT_EMPTY);
    let error = client.children(&format!("{path}/none")).wait().unwrap_err();
    assert!(error.is_no_node());
}

#[test]
fn creating_reports_what_is_in_the_way() {
    let (client, path) = alone();
    let error = client.create(&path, b"", CreateMode::Persistent).wait().unwrap_err();
    assert!(error.is_node_exists());
    let orphan = format!("{path}/no/parent");
    assert!(client.create(&orphan, b"", CreateMode::Persistent).wait().unwrap_err().is_no_node());
}

#[test]
fn an_acl_is_set_read_and_guarded_by_its_version() {
    let (client, path) = alone();
    let list = client.get_acl(&path).wait().unwrap();
    assert_eq!((list.entries, list.stat.aversion), (Acl::open(), 0));
    let wanted = vec![
        Acl::new(Permissions::READ | Permissions::ADMIN, "world", "anyone"),
        Acl::new(Permissions::ALL, "ip", "127.0.0.1"),
    ];
    client.set_acl(&path, &wanted, Some(0)).wait().unwrap();
    let list = client.get_acl(&path).wait().unwrap();
    assert_eq!((list.entries, list.stat.aversion), (wanted, 1));
    let error = client.set_acl(&path, &Acl::open(), Some(0)).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_VERSION);
    for bad in [vec![], vec![Acl::new(Permissions::ALL, "nonsense", "x")]] {
        let error = client.set_acl(&path, &bad, None).wait().unwrap_err();
        assert_eq!(error.code(), Code::INVALID_ACL);
    }
}

#[test]
fn a_sync_ends_and_later_reads_see_what_was_written() {
    let (client, path) = alone();
    let other = connect(shared());
    other.set(&path, b"new", None).wait().unwrap();
    client.sync(&path).wait().unwrap();
    assert_eq!(client.get(&path).wait().unwrap().data, b"new");
}

#[test]
fn a_path_is_made_with_all_its_parents_and_again_without_complaint() {
    let (client, path) = alone();
    let deep = format!("{path}/a/b/c");
    for _ in 0..2 {
        client.make_path(&deep).wait().unwrap();
    }
    assert!(client.exists(&deep).wait().unwrap().is_some());
    client.make_path("/").wait().unwrap();
    assert_eq!(client.make_path("a/b").wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
}

#[test]
fn a_path_is_made_below_a_parent_that_others_own() {
    let (client, path) = alone();
    client.create(&format!("{path}/mine"), b"", CreateMode::Persistent).wait().unwrap();
    client.set_acl(&path, &Acl::read_only(), None).wait().unwrap();
    client.make_path(&format!("{path}/mine/deep/er")).wait().unwrap();
    let error = client.make_path(&format!("{path}/other")).wait().unwrap_err();
    assert_eq!(error.code(), Code::NO_AUTH);
}

#[test]
fn in_a_chroot_paths_come_back_as_they_were_given() {
    let (client, path) = alone();
    let hosts = format!("{}{path}", shared().hosts());
    let inside = options().connect(&hosts).wait().unwrap();
    let created = inside.create("/node", b"x", CreateMode::Persistent).wait().unwrap();
    assert_eq!(created.path, "/node");
    let created = inside.create("/s-", b"", CreateMode::EphemeralSequential).wait().unwrap();
    assert_eq!(created.path, "/s-0000000001");
    assert_eq!(client.get(&format!("{path}/node")).wait().unwrap().data, b"x");
    inside.make_path("/a/b").wait().unwrap();
    assert!(inside.sync("/").wait().is_ok());
    let watch = inside.exists_and_watch("/later").wait().unwrap().watch;
    let data = inside.get_and_watch("/node").wait().unwrap().watch;
    let Watched { value: mut listed, watch: children } =
        inside.children_and_watch("/").wait().unwrap();
    listed.names.sort();
    assert_eq!(listed.names, ["a", "node", "s-0000000001"]);
    client.create(&format!("{path}/later"), b"", CreateMode::Persistent).wait().unwrap();
    client.set(&format!("{path}/node"), b"y", None).wait().unwrap();
    assert_eq!(watch.wait().unwrap().path, "/later");
    assert_eq!(children.wait().unwrap().path, "/");
    assert_eq!(data.wait().unwrap().path, "/node");
}

#[test]
fn a_chroot_that_is_not_there_is_made_by_whoever_wants_it() {
    let (client, path) = alone();
    let hosts = format!("{}{path}/x/y", shared().hosts());
    let inside = options().connect(&hosts).wait().unwrap();
    assert!(inside.create("/a", b"", CreateMode::Persistent).wait().unwrap_err().is_no_node());
    assert!(inside.get("/").wait().unwrap_err().is_no_node());
    client.make_path(&format!("{path}/x/y")).wait().unwrap();
    inside.create("/a", b"", CreateMode::Persistent).wait().unwrap();
}

#[test]
fn every_operation_can_be_awaited() {
    let (client, path) = alone();
    block_on(async {
        let node = format!("{path}/node");
        let created = client.create(&node, b"1", CreateMode::Persistent).await?;
        assert_eq!(created.path, node);
        client.set(&node, b"2", Some(0)).await?;
        assert_eq!(client.get(&node).await?.data, b"2");
        assert_eq!(client.children(&path).await?.names, ["node"]);
        let acl = client.get_acl(&node).await?.entries;
        client.set_acl(&node, &acl, None).await?;
        client.sync(&node).await?;
        client.make_path(&format!("{path}/a/b")).await?;
        client.add_auth("digest", b"a:b").await?;
        let Watched { value: stat, watch } = client.exists_and_watch(&node).await?;
        assert_eq!(stat.unwrap().version, 1);
        client.delete(&node, None).await?;
        assert_eq!(watch.await?.path, node);
        assert_eq!(client.exists(&node).await?, None);
        client.multi(&[zklock::zookeeper::Op::check(&path)]).await?;
        client.close().await
    })
    .unwrap();
}

#[test]
fn a_client_tells_what_it_is() {
    let (client, _) = alone();
    let text = format!("{client:?}");
    let id = format!("{:#x}", session_id(&client));
    assert!(text.contains(&id) && text.contains("Connected"), "{text}");
    eventually("the server knows the session", || {
        shared().sessions().unwrap().contains(&session_id(&client))
    });
}

#[test]
fn a_znode_is_deleted_with_all_that_is_below_it() {
    let (client, path) = alone();
    let other = connect(shared());
    client.make_path(&format!("{path}/deep/down/below")).wait().unwrap();
    let many: Vec<_> = (0..1_000)
        .map(|n| client.create(&format!("{path}/deep/{n}"), b"", CreateMode::Persistent))
        .collect();
    many.into_iter().for_each(|one| drop(one.wait().unwrap()));
    other.create(&format!("{path}/deep/down/theirs"), b"", CreateMode::Ephemeral).wait().unwrap();
    client.delete_all(&path).wait().unwrap();
    assert!(client.exists(&path).wait().unwrap().is_none());
    assert_eq!(client.delete_all(&path).wait().unwrap_err().code(), Code::NO_NODE);
    assert_eq!(client.delete_all("/").wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
    assert_eq!(client.delete_all("no/path").wait().unwrap_err().code(), Code::BAD_ARGUMENTS);
}

#[test]
fn a_child_that_another_client_deletes_first_is_no_error() {
    let bench = Bench::with_directory();
    let child = format!("{}/child", bench.path);
    let mut other = bench.raw();
    other.create(&child, b"").unwrap();
    let first = {
        let child = child.clone();
        Action::run(move || other.delete(&child).unwrap())
    };
    let deleted = bench.proxy.on(Rule::request(wire::Op::Delete).path(&child).once(), first);
    bench.client().delete_all(&bench.path).wait().unwrap();
    deleted.wait_hits(1, TIMEOUT).unwrap();
    assert!(!bench.exists(&bench.path));
}

#[test]
fn children_that_may_not_be_listed_or_deleted_stay_and_are_said() {
    let (client, path) = alone();
    for missing in [Permissions::READ, Permissions::DELETE] {
        let parent = format!("{path}/{}", missing.bits());
        let acl = [Acl::new(Permissions::ALL.difference(missing), "world", "anyone")];
        client.create_with_acl(&parent, b"", CreateMode::Persistent, &acl).wait().unwrap();
        let child = client.create(&format!("{parent}/child"), b"", CreateMode::Persistent);
        let child = child.wait().unwrap().path;
        let error = client.delete_all(&parent).wait().unwrap_err();
        assert_eq!(error.code(), Code::NO_AUTH, "{error}");
        assert!(client.exists(&child).wait().unwrap().is_some());
    }
}

#[test]
fn what_others_create_meanwhile_is_deleted_too_or_said() {
    let (client, path) = alone();
    let (other, stop) = (connect(shared()), AtomicBool::new(false));
    client.make_path(&format!("{path}/busy")).wait().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let name = format!("{path}/busy/x-");
            while !stop.load(Ordering::SeqCst) {
                let made = other.create(&name, b"", CreateMode::PersistentSequential).wait();
                if made.is_err_and(|error| error.is_no_node()) {
                    break;
                }
            }
        });
        let deleted = client.delete_all(&path).wait();
        stop.store(true, Ordering::SeqCst);
        if let Err(error) = deleted {
            assert_eq!(error.code(), Code::NOT_EMPTY, "{error}");
        }
    });
    let rest = client.delete_all(&path).wait();
    assert!(rest.is_ok() || rest.unwrap_err().is_no_node());
    assert!(client.exists(&path).wait().unwrap().is_none());
}
