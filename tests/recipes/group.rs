//! Members of a group: each is there once, for as long as it lives, and all see the same.

use std::time::Duration;

use test_support::{
    Bench, TIMEOUT, eventually, options, poll_unless, session_id, wait_for_another_session,
};
use zklock::Code;
use zklock::recipes::{Group, Member, Members, Membership};
use zklock::zookeeper::{self, Acl, Permissions, SessionState};
use zklock_testing::wire::{CreateMode, Op, Ops};
use zklock_testing::{Action, Rule};

use crate::LOSSES;

fn group(bench: &Bench) -> Group {
    bench.direct().group(&bench.path)
}

fn join(group: &Group, data: &str) -> Membership {
    group.join(data).within(TIMEOUT).wait().unwrap()
}

fn data(members: &[Member]) -> Vec<&str> {
    members.iter().map(|member| std::str::from_utf8(&member.data).unwrap()).collect()
}

fn next(members: &mut Members) -> Vec<Member> {
    members.wait_timeout(TIMEOUT).expect("it is reported in time").unwrap().unwrap()
}

/// Waits until those are reported; what comes between may be left out.
fn reach(members: &mut Members, wanted: &[&str]) {
    while data(&next(members)) != wanted {}
}

fn expect_empty(bench: &Bench) {
    eventually("nobody is left", || {
        match bench.ask(|raw| raw.children(&bench.path)) {
            // The server removes a container that is empty.
            Err(error) => error.code() == Some(Code::NO_NODE.as_raw()),
            Ok(names) => names.is_empty(),
        }
    });
}

#[test]
fn members_are_listed_in_the_order_in_which_they_joined_until_they_leave() {
    let bench = Bench::shared();
    let group = group(&bench);
    assert_eq!(group.members().wait().unwrap(), [], "nobody has joined it yet");
    let (a, b, c) = (join(&group, "a"), join(&group, "b"), join(&self::group(&bench), ""));
    let members = group.members().wait().unwrap();
    assert_eq!(data(&members), ["a", "b", ""]);
    assert_eq!(members[0].id, a.id());
    assert!(members[0].joined < members[1].joined && members[0].session == members[1].session);
    assert!(a.is_member() && c.is_member());
    b.leave().wait().unwrap();
    assert_eq!(data(&group.members().wait().unwrap()), ["a", ""]);
    drop((a, c));
    expect_empty(&bench);
    let error = bench.direct().group("no/path").join("x").wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS);
}

#[test]
fn a_join_that_is_refused_after_a_lost_reply_leaves_no_member() {
    let bench = Bench::shared();
    join(&group(&bench), "before").leave().wait().unwrap();
    let gate = bench.proxy.hold(Rule::reply(Ops::creates()).path_prefix(&bench.path).once());
    let client = bench.client();
    let joining = client.group(&bench.path).join("ghost");
    gate.wait_reached(TIMEOUT).unwrap();
    let all_but_create =
        Permissions::READ | Permissions::WRITE | Permissions::DELETE | Permissions::ADMIN;
    let acl = [Acl::new(all_but_create, "world", "anyone")];
    bench.direct().set_acl(&bench.path, &acl, None).wait().unwrap();
    bench.proxy.reset_all();
    gate.release();
    assert_eq!(joining.within(TIMEOUT).wait().unwrap_err().code(), Code::NO_AUTH);
    expect_empty(&bench);
}

#[test]
fn who_watches_hears_of_everybody_who_comes_or_goes() {
    let bench = Bench::shared();
    let mut members = group(&bench).watch_members();
    assert_eq!(next(&mut members), []);
    assert!(members.wait_timeout(Duration::from_millis(100)).is_err(), "nothing has changed");
    let a = join(&group(&bench), "a");
    reach(&mut members, &["a"]);
    let client = bench.direct();
    let b = join(&client.group(&bench.path), "b");
    reach(&mut members, &["a", "b"]);
    a.leave().wait().unwrap();
    reach(&mut members, &["b"]);
    // A child that is no member.
    bench.ask(|raw| raw.create(&format!("{}/note", bench.path), b"x")).unwrap();
    let party = format!("{}/{}", bench.path, "0123456789abcdef0123456789abcdef");
    let mut kazoo = bench.raw();
    kazoo.create_with(&party, b"party", CreateMode::Ephemeral).unwrap();
    reach(&mut members, &["b", "party"]);
    kazoo.delete(&party).unwrap();
    client.close().wait().unwrap();
    assert!(!b.is_member());
    eventually("nobody is there", || {
        bench.ask(|raw| raw.children(&bench.path)).unwrap() == ["note"]
    });
    while !next(&mut members).is_empty() {}
    b.leave().wait().unwrap();
}

#[test]
fn whatever_frame_is_lost_a_member_is_there_once_and_then_gone() {
    let bench = Bench::shared();
    let kept = join(&group(&bench), "kept");
    for ops in [Ops::creates(), Op::Delete.into()] {
        for loss in LOSSES {
            for way in [Rule::request, Rule::reply] {
                let client = bench.client();
                let session = session_id(&client);
                let lost = bench.proxy.on(way(ops.clone()).path_prefix(&bench.path).once(), loss());
                let member = join(&client.group(&bench.path), "x");
                let members = group(&bench).members().wait().unwrap();
                assert_eq!(data(&members), ["kept", "x"]);
                assert_eq!((members[1].id.as_str(), members[1].session), (member.id(), session));
                member.leave().wait().unwrap();
                assert_eq!(data(&group(&bench).members().wait().unwrap()), ["kept"]);
                lost.wait_hits(1, TIMEOUT).unwrap();
                lost.remove();
            }
        }
    }
    drop(kept);
    expect_empty(&bench);
}

#[test]
fn a_member_whose_session_ends_joins_again_under_its_id() {
    let bench = Bench::shared();
    let mut members = group(&bench).watch_members();
    let client = bench.client();
    let member = join(&client.group(&bench.path), "a");
    reach(&mut members, &["a"]);
    for _ in 0..3 {
        let session = session_id(&client);
        bench.expire(&client);
        wait_for_another_session(&client, session);
        eventually("it is a member again", || member.is_member());
        let there = group(&bench).members().wait().unwrap();
        assert_eq!((there[0].id.as_str(), there[0].session), (member.id(), session_id(&client)));
    }
    member.leave().wait().unwrap();
    reach(&mut members, &[]);
}

#[test]
fn what_an_earlier_session_has_left_is_taken_out_of_the_way() {
    let bench = Bench::shared();
    let client = bench.client();
    let member = join(&client.group(&bench.path), "a");
    let session = session_id(&client);
    // As where the servers have not ended the earlier session yet.
    let (mut raw, path) = (bench.raw(), member.path().to_owned());
    let stale = raw.session_id();
    let create = Rule::request(Ops::creates()).path(path.as_str()).once();
    let left = Action::run(move || {
        raw.create_with(&path, b"stale", CreateMode::Ephemeral).unwrap();
    });
    let left = bench.proxy.on(create, left);
    bench.expire(&client);
    wait_for_another_session(&client, session);
    left.wait_hits(1, TIMEOUT).unwrap();
    eventually("it is a member again", || member.is_member());
    let there = group(&bench).members().wait().unwrap();
    assert_eq!(data(&there), ["a"]);
    assert!(there[0].session == session_id(&client) && there[0].session != stale);
    drop(member);
    expect_empty(&bench);
}

#[test]
fn a_member_that_somebody_has_deleted_is_there_again() {
    let bench = Bench::shared();
    let member = join(&group(&bench), "a");
    let first = group(&bench).members().wait().unwrap()[0].joined;
    // Also where that comes before it is watched.
    for _ in 0..2 {
        bench.delete(member.path());
        eventually("it is there again", || bench.exists(member.path()));
    }
    eventually("it is a member", || member.is_member());
    assert!(group(&bench).members().wait().unwrap()[0].joined > first);
    member.leave().wait().unwrap();
    expect_empty(&bench);
}

#[test]
fn a_member_that_leaves_while_it_joins_again_is_gone() {
    let bench = Bench::shared();
    let client = bench.client();
    let group = client.group(&bench.path);
    for way in [Rule::request, Rule::reply] {
        let member = join(&group, "a");
        let path = member.path().to_owned();
        let create = bench.proxy.hold(way(Ops::creates()).path(path.as_str()).once());
        bench.delete(&path);
        create.wait_reached(TIMEOUT).unwrap();
        assert!(!member.is_member());
        let leaving = member.leave();
        create.release();
        leaving.within(TIMEOUT).wait().unwrap();
        // By the same session, so after the create.
        join(&group, "last").leave().wait().unwrap();
        assert!(!bench.exists(&path));
    }
}

#[test]
fn a_member_that_leaves_before_its_earlier_session_has_ended_is_gone() {
    let bench = Bench::shared();
    let client = bench.client();
    let undeletable = format!("{}-undeletable", bench.path);
    let acl = [Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone")];
    client
        .create_with_acl(&undeletable, b"", zookeeper::CreateMode::Persistent, &acl)
        .wait()
        .unwrap();
    let member = join(&client.group(&bench.path), "a");
    let path = member.path().to_owned();
    let looks = Rule::reply(Op::Exists).path(path.as_str());
    bench.proxy.wait_for(&looks, 1, TIMEOUT).unwrap();
    let farewell = bench.proxy.hold(Rule::request(Op::CloseSession));
    let looked = bench.proxy.hold(looks.once());
    // It replaces the session.
    client.lock(&undeletable).acquire().wait().unwrap().release().wait().unwrap_err();
    looked.wait_reached(TIMEOUT).unwrap();
    let deletes = Rule::request(Op::Delete);
    let before = bench.proxy.count(&deletes);
    let leaving = member.leave();
    // It looks itself, and asks the servers to catch up by that.
    bench.proxy.wait_for(&deletes, before + 1, TIMEOUT).unwrap();
    looked.release();
    leaving.within(TIMEOUT).wait().unwrap();
    assert!(!bench.exists(&path));
    farewell.release();
}

#[test]
fn who_gives_up_joining_leaves_nothing_behind() {
    let bench = Bench::with_directory();
    let client = bench.client();
    let group = client.group(&bench.path);
    for polls in 0..4 {
        let mut joining = group.join("given up");
        let mut polls = 0..polls;
        poll_unless(&mut joining, || polls.next().is_none());
    }
    expect_empty(&bench);
    for way in [Rule::request, Rule::reply] {
        let lost =
            bench.proxy.on(way(Ops::creates()).path_prefix(&bench.path).once(), Action::Drop);
        let joining = group.join("given up");
        lost.wait_hits(1, TIMEOUT).unwrap();
        drop(joining);
        lost.remove();
        // What comes after it shows that it was not overtaken.
        join(&group, "last").leave().wait().unwrap();
        expect_empty(&bench);
    }
    let reply = bench.proxy.hold(Rule::reply(Ops::creates()).path_prefix(&bench.path).once());
    let joining = group.join("given up");
    reply.wait_reached(TIMEOUT).unwrap();
    drop(joining);
    reply.release();
    expect_empty(&bench);
}

#[test]
fn no_change_is_missed_by_a_watcher_whose_session_ends() {
    let bench = Bench::shared();
    let watcher = bench.client();
    let mut members = watcher.group(&bench.path).watch_members();
    assert_eq!(next(&mut members), []);
    for round in 0..4 {
        bench.proxy.refuse();
        let member = join(&group(&bench), "a");
        let session = session_id(&watcher);
        if round % 2 == 0 {
            bench.expire(&watcher);
        }
        bench.proxy.heal();
        reach(&mut members, &["a"]);
        if round % 2 == 0 {
            wait_for_another_session(&watcher, session);
        }
        bench.proxy.reset_all();
        member.leave().wait().unwrap();
        reach(&mut members, &[]);
    }
    watcher.close().wait().unwrap();
    let error = members.wait_timeout(TIMEOUT).expect("it ends").unwrap().unwrap_err();
    assert!(error.is_session_over(), "{error}");
}

#[test]
fn a_member_whose_read_is_lost_is_reported_without_another_change() {
    let bench = Bench::shared();
    let watcher = bench.client();
    let mut members = watcher.group(&bench.path).watch_members();
    assert_eq!(next(&mut members), []);
    for loss in LOSSES {
        for way in [Rule::request, Rule::reply] {
            let read = way(Op::GetData).path_prefix(&bench.path).once();
            let lost = bench.proxy.on(read, loss());
            let member = join(&group(&bench), "a");
            reach(&mut members, &["a"]);
            lost.wait_hits(1, TIMEOUT).unwrap();
            member.leave().wait().unwrap();
            reach(&mut members, &[]);
        }
    }
}

#[test]
fn who_joins_is_read_alone_and_who_goes_not_at_all() {
    let bench = Bench::shared();
    let watcher = bench.client();
    let mut members = watcher.group(&bench.path).watch_members();
    assert_eq!(next(&mut members), []);
    let group = group(&bench);
    let reads = || bench.proxy.count(&Rule::request(Op::GetData).path_prefix(&bench.path));
    let mut there = Vec::new();
    for n in 1..=3 {
        there.push(group.join(n.to_string()).wait().unwrap());
        while next(&mut members).len() < n {}
        assert_eq!(reads(), n);
    }
    drop(there.pop());
    while next(&mut members).len() > 2 {}
    assert_eq!(reads(), 3);
}

#[test]
fn a_thousand_that_join_at_once_cost_a_watcher_a_read_each_and_few_listings() {
    const MEMBERS: usize = 1_000;
    let bench = Bench::shared();
    let watcher = bench.client();
    let mut members = watcher.group(&bench.path).watch_members();
    assert_eq!(next(&mut members), []);
    let group = group(&bench);
    let joining: Vec<_> = (0..MEMBERS).map(|n| group.join(n.to_string())).collect();
    let there: Vec<_> = joining.into_iter().map(|joining| joining.wait().unwrap()).collect();
    while next(&mut members).len() < MEMBERS {}
    let asked = |ops: Ops| bench.proxy.count(&Rule::request(ops).path_prefix(&bench.path));
    let (reads, listings) = (asked(Op::GetData.into()), asked(Ops::lists()));
    println!("{MEMBERS} members: {reads} reads, {listings} listings by each who watches");
    assert_eq!(reads, MEMBERS);
    assert!(listings < MEMBERS / 4, "{listings} listings");
    drop(there);
    while !next(&mut members).is_empty() {}
    assert_eq!(asked(Op::GetData.into()), MEMBERS, "who goes is not read");
}

#[test]
fn a_member_that_may_not_delete_its_znode_has_not_left() {
    let bench = Bench::with_directory();
    let acl = [Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone")];
    let client = bench.direct();
    client.set_acl(&bench.path, &acl, None).wait().unwrap();
    let member = join(&client.group(&bench.path), "a");
    assert_eq!(member.leave().wait().unwrap_err().code(), Code::NO_AUTH);
}

#[test]
fn a_member_that_leaves_a_client_whose_end_nobody_confirms_may_be_there() {
    let bench = Bench::shared();
    let client =
        options().operation_timeout(TIMEOUT / 10).connect(&bench.proxy.hosts()).wait().unwrap();
    let member = join(&client.group(&bench.path), "a");
    bench.proxy.cut();
    let leaving = member.leave();
    let closed = client.close().wait();
    assert_eq!(closed.unwrap_err().code(), Code::CONNECTION_LOSS);
    assert_eq!(leaving.wait().unwrap_err().code(), Code::CONNECTION_LOSS);
    bench.proxy.heal();
    // One whose end is confirmed is gone.
    let client = bench.direct();
    let member = join(&client.group(&bench.path), "b");
    let (leaving, closing) = (member.leave(), client.close());
    closing.wait().unwrap();
    leaving.wait().unwrap();
}

#[test]
fn a_member_whose_session_is_over_has_left_though_no_other_session_follows() {
    let bench = Bench::shared();
    let client = options().reopen(false).connect(&bench.proxy.hosts()).wait().unwrap();
    let member = join(&client.group(&bench.path), "a");
    bench.expire(&client);
    eventually("it is over", || client.state() == SessionState::Closed);
    member.leave().within(TIMEOUT).wait().unwrap();
    // Also where servers are away before the next session.
    let client = bench.client();
    let member = join(&client.group(&bench.path), "b");
    let next = bench.proxy.hold(Rule::request(Op::Connect).nth(2));
    bench.expire(&client);
    next.wait_reached(TIMEOUT).unwrap();
    member.leave().within(TIMEOUT).wait().unwrap();
}

#[test]
fn a_member_that_has_joined_again_is_listed_by_that() {
    let bench = Bench::shared();
    let moves = bench.direct();
    let first = join(&moves.group(&bench.path), "first");
    let second = join(&group(&bench), "second");
    let mut members = bench.client().group(&bench.path).watch_members();
    reach(&mut members, &["first", "second"]);
    // While the watcher hears nothing.
    bench.proxy.refuse();
    let session = session_id(&moves);
    bench.expire(&moves);
    wait_for_another_session(&moves, session);
    eventually("it is a member again", || first.is_member());
    bench.proxy.heal();
    let third = join(&group(&bench), "third");
    reach(&mut members, &["second", "first", "third"]);
    drop((first, second, third));
}
