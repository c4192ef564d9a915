//! What must be true at every step, at rest, and at the end.
//!
//! A *believer* is a contender whose guard does not say that it is lost. Its claim is there, no claim is
//! there that was made before and keeps it out, and its session is alive. Only who was *robbed*, by an operator who has
//! deleted its claim, believes without: until it was shown that, by the event of a watch on its znode.

use super::board::{Post, SeenTenure};
use super::client::Connection;
use super::contender::{is_labelled, label};
use super::run::Run;
use super::scenario::{LOCK, Wait};
use super::server::{Kind, Life, number, parent};
use super::share::{Share, may_hold_together};
use super::world::World;
use crate::lock::tenure::Tenure as _;
use crate::lock::{Access, LostReason, Strategy};
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::name;

pub(super) fn at_every_step(run: &Run) {
    let_the_shown_sink_in(run);
    let mut holders = Vec::new();
    let mut complaint = None;
    {
        let board = run.board.lock();
        for (number, post) in board.posts.iter().enumerate() {
            if post.tenures.is_empty() || run.world.lock().clients[post.client].dead {
                continue;
            }
            let ended = |tenure: &SeenTenure| {
                run.machines[post.client]
                    .run(|| tenure.ended())
                    .map(|reason| (reason, tenure.number()))
            };
            // Where one is lost, so is what stands for all.
            if let Some((reason, claim)) = post.tenures.iter().find_map(ended) {
                // One of them is enough.
                let world = run.world.lock();
                let mut nodes = post.tenures.iter().flat_map(|tenure| tenure.nodes());
                if reason == LostReason::Deleted && nodes.all(|node| is_there(&world, &node)) {
                    complaint = Some(format!("contender {number} says that {claim} is deleted"));
                }
                continue;
            }
            for (lock, tenure) in post.locks.iter().zip(&post.tenures) {
                let world = run.world.lock();
                let nodes = tenure.nodes();
                for node in &nodes {
                    let wrong = wrong_belief(run, &world, post.client, node);
                    complaint = complaint.or(wrong.map(|why| format!("contender {number} {why}")));
                }
                // What it is now.
                let share = match tenure.access() {
                    Some(Access::Read) => Share::Reads,
                    Some(Access::Upgradeable) => Share::Looks,
                    Some(_) => Share::Alone,
                    None => post.share,
                };
                // What others take it for, by its claims alone.
                let mut shown = nodes.iter().map(|node| Share::of(&node.path));
                let shown = if shown.clone().any(|it| it == Share::Alone) {
                    Some(Share::Alone)
                } else {
                    shown.next()
                };
                if shown != Some(share) {
                    let why =
                        format!("contender {number} holds as {share:?}, and claims {shown:?}");
                    complaint.get_or_insert(why);
                }
                if !nodes.iter().any(|node| is_robbed(&world, node)) {
                    holders.push((number, *lock, tenure.number(), share));
                }
            }
        }
    }
    let violation = run.world.lock().violation.take();
    let mut board = run.board.lock();
    if let Some(violation) = violation {
        board.complain(|| violation);
    }
    let most = run.world.lock().limits.1;
    for lock in run.scenario.locks() {
        let of_lock = holders.iter().filter(|(_, at, _, _)| *at == lock);
        let shares: Vec<Share> = of_lock.map(|(_, _, _, share)| *share).collect();
        if !may_hold_together(&shares, most) {
            board.complain(|| format!("{lock} held by several (contender, claim): {holders:?}"));
        }
    }
    if let Some(complaint) = complaint {
        board.complain(|| complaint);
    }
}

/// Whether it is there that stands for a hold.
fn is_there(world: &World, node: &Node) -> bool {
    world.leader.tree.get(&node.path).is_some_and(|there| there.czxid == node.czxid)
}

fn is_robbed(world: &World, node: &Node) -> bool {
    world.robbed.contains_key(&number(&node.path, node.czxid))
}

/// What clients were shown, and all of whose code has run since, they know.
fn let_the_shown_sink_in(run: &Run) {
    let mut world = run.world.lock();
    for (number, client) in world.clients.iter_mut().enumerate() {
        if client.shown.is_fresh()
            && client.is_running()
            && !run.tasks.woken().any(|(_, of)| of == number)
        {
            client.shown.was_looked_at();
        }
    }
}

/// Why a guard may not say that it is held.
fn wrong_belief(run: &Run, world: &World, client: usize, node: &Node) -> Option<String> {
    let (path, token) = (&*node.path, number(&node.path, node.czxid));
    if world.leader.life(node.session.id()) != Life::Alive {
        return Some(format!("holds with {token}, and its session is over"));
    }
    let of = &world.clients[client];
    if !run.scenario.reduced && !of.heard.proves(of.clock) {
        return Some(format!(
            "holds with {token} longer than its servers' answers prove its session"
        ));
    }
    if world.robbed.contains_key(&token) {
        // A watch of another contender on the same client tells the holder nothing.
        let is_alone = run.scenario.contenders.iter().filter(|it| it.client == client).count() == 1;
        let knows = is_alone && world.clients[client].shown.has_told_holder(token);
        return knows.then(|| format!("holds with {token}, and was shown that it is deleted"));
    }
    if !is_there(world, node) {
        return Some(format!("holds with {token}, which is gone"));
    }
    (!world.may_hold(path, node.czxid))
        .then(|| format!("holds with {token}, behind another's claim"))
}

/// Nothing is under way: everybody holds, or waits for something that will come, or is done.
pub(super) fn at_rest(run: &Run) {
    let mut complaints = Vec::new();
    {
        let board = run.board.lock();
        let mut wanted = vec![0; run.scenario.clients];
        let tenures = board.posts.iter().flat_map(|post| &post.tenures);
        let held: Vec<i64> = tenures.map(|tenure| tenure.node.czxid).collect();
        for (number, post) in board.posts.iter().enumerate() {
            if run.world.lock().clients[post.client].dead || post.done {
                continue;
            }
            let what = match (&post.tenures[..], post.acquires) {
                (tenures @ [_, ..], _) => {
                    let is_held = |tenure: &SeenTenure| tenure.ended().is_none();
                    let believes = run.machines[post.client].run(|| tenures.iter().all(is_held));
                    let nodes: Vec<Node> =
                        tenures.iter().flat_map(|tenure| tenure.nodes()).collect();
                    let robbed = nodes.iter().any(|node| is_robbed(&run.world.lock(), node));
                    wanted[post.client] += nodes.len() + usize::from(post.acquires.is_some());
                    let others = board.posts.iter().enumerate().filter(|(at, _)| *at != number);
                    let mut held = others.flat_map(|(_, other)| &other.tenures);
                    let is_told = held.any(|other| {
                        let mut nodes = other.nodes().into_iter();
                        nodes.any(|node| watches(run, &run.world.lock(), post.client, &node.path))
                    });
                    let comes = run.waits_for(post.client).is_some();
                    if believes && post.acquires.is_some() && !is_told && !comes {
                        Some("waits to write, and watches nobody who holds")
                    } else {
                        (believes && robbed && !run.scenario.reduced)
                            .then_some("does not learn that its claim is deleted")
                    }
                }
                ([], Some(Wait::Forever)) => {
                    wanted[post.client] += post.locks.len();
                    let label = label(number, post.attempts);
                    wait_in_vain(run, &run.world.lock(), post, &label, &held)
                }
                ([], Some(_)) => {
                    wanted[post.client] += post.locks.len();
                    // In a reduced scenario, pauses are left out that would change nothing.
                    (!run.scenario.reduced).then_some("has a deadline that can't pass")
                }
                ([], None) => Some("is stuck"),
            };
            complaints.extend(what.map(|what| format!("contender {number} {what}")));
        }
        let world = run.world.lock();
        for (client, wanted) in wanted.into_iter().enumerate() {
            let session = Kind::Ephemeral(world.clients[client].session);
            let nodes = world.leader.tree.nodes.values();
            let claims = nodes.filter(|node| node.kind == session).count();
            if claims > wanted && run.waits_for(client).is_none() {
                complaints.push(format!("client {client} has a claim that nobody wants"));
            }
        }
    }
    if !complaints.is_empty() {
        run.board.lock().complain(|| format!("at rest, {}", complaints.join("; ")));
    }
}

/// Whether who is kept out by the claims before its own, in their order, hears when that changes.
fn will_be_told(
    share: Share,
    before: &[(i64, &String)],
    held: &[i64],
    watches: &dyn Fn(&str) -> bool,
) -> bool {
    let takes = |path: &str| matches!(Share::of(path), Share::Takes(_));
    let mut nearest = before.iter().rev();
    let nearest = match share {
        // What is no permit takes them all.
        Share::Takes(_) if before.iter().any(|(_, path)| !takes(path)) => {
            nearest.find(|(_, path)| !takes(path))
        }
        // Who holds permits will not say so.
        Share::Takes(_) => nearest.next().filter(|(czxid, _)| !held.contains(czxid)),
        Share::Reads | Share::Looks => {
            nearest.find(|(_, path)| !share.goes_with(Share::of(path), 0))
        }
        Share::Alone => nearest.next(),
    };
    nearest.is_some_and(|(_, path)| watches(path))
}

/// Whether that client will hear of a change of that znode.
fn watches(run: &Run, world: &World, client: usize, path: &str) -> bool {
    let on = &world.clients[client];
    on.replica.watches.contains(path)
        && on.watches.contains_key(path)
        && run.clients[client].inner().waits_for_event(path)
}

/// Why a contender will wait for ever, if it will.
fn wait_in_vain(
    run: &Run,
    world: &World,
    post: &Post,
    label: &str,
    held: &[i64],
) -> Option<&'static str> {
    let client = post.client;
    let on = &world.clients[client];
    if run.waits_for(client).is_some() || run.scenario.strategy == Strategy::Poll {
        return None;
    }
    if on.connection != Connection::Up {
        return Some("waits without a connection");
    }
    let watches = |path: &str| watches(run, world, client, path);
    let tree = &world.leader.tree;
    if run.scenario.strategy == Strategy::Watch {
        return (tree.get(LOCK).is_none() || !watches(LOCK)).then_some("waits for no holder");
    }
    // It waits at the first of its locks where it is kept out.
    for lock in post.locks {
        match standing(run, world, post, label, held, lock) {
            Position::First => {}
            Position::Waits => return None,
            Position::InVain(why) => return Some(why),
        }
    }
    Some("may hold and does not know")
}

/// Where a contender stands at a lock that it waits for.
enum Position {
    First,
    /// And hears when that changes.
    Waits,
    InVain(&'static str),
}

fn standing(
    run: &Run,
    world: &World,
    post: &Post,
    label: &str,
    held: &[i64],
    lock: &str,
) -> Position {
    let (client, tree) = (post.client, &world.leader.tree);
    let on = &world.clients[client];
    let watches = |path: &str| watches(run, world, client, path);
    let is_ours = |claim: &i64| {
        let record = world.leader.records.get(claim);
        record.is_some_and(|record| is_labelled(record, label))
    };
    let claims = tree.nodes.iter().filter(|(path, node)| {
        matches!(node.kind, Kind::Ephemeral(_))
            && parent(path) == lock
            && name::sequence(name::last(path)).is_some()
    });
    let mut claims: Vec<_> = claims.map(|(path, node)| (number(path, node.czxid), path)).collect();
    claims.sort_unstable();
    // Where a claim is in the place of another, that counts; it is before all whose numbers say nothing.
    let is_placed = |path: &str| name::is_in_anothers_place(name::last(path));
    let placed = claims.iter().find(|(_, path)| is_placed(path));
    let placed = placed.and_then(|(_, path)| name::sequence(name::last(path)));
    if let Some(placed) = placed {
        claims.sort_by_key(|(_, path)| {
            let name = name::last(path);
            let is_behind = !(name::is_upgrade(name) && is_placed(path));
            let number = name::sequence(name).filter(|number| !name::is_out_of_turn(*number));
            (number.is_none(), number.map(|number| number.wrapping_sub(placed)), is_behind)
        });
    }
    let was_robbed = world.robbed.keys().any(is_ours);
    // At any of its locks.
    let watches_any = || tree.nodes.keys().any(|path| parent(path) != "/" && watches(path));
    // Who is given the last number while another has it waits until that has gone.
    let waits_for_a_number = || {
        let last = |path: &str| name::sequence(path) == Some(i32::MAX);
        tree.nodes.keys().any(|path| last(name::last(path)) && watches(path))
    };
    let mut ours = claims.iter().enumerate().filter(|(_, (claim, _))| is_ours(claim));
    match (ours.next(), ours.next()) {
        // Who was robbed while it waits learns of that when it looks again.
        (None, _) if was_robbed && watches_any() || waits_for_a_number() => Position::Waits,
        (None, _) => Position::InVain("waits without a claim"),
        (Some(_), Some(_)) => Position::InVain("has two claims"),
        (Some((place, (_, own))), None) => {
            let (share, before) = (Share::of(own), &claims[..place]);
            let limit = world.limit(lock).unwrap_or(run.scenario.limit);
            if !share.is_kept_out_by(before.iter().map(|(_, path)| Share::of(path)), limit) {
                return Position::First;
            }
            // What came into the place of another, or is by which another writes, came later than who waits behind it.
            let came_later = |path: &str| name::has_anothers_token(name::last(path));
            let is_told = will_be_told(share, before, held, &watches)
                || before.iter().any(|(_, path)| came_later(path))
                    && before
                        .iter()
                        .any(|(_, path)| !share.goes_with(Share::of(path), 0) && watches(path));
            let watches_children = on.replica.child_watches.contains(lock)
                && on.child_watches.contains(lock)
                && run.clients[client].inner().waits_for_event(lock);
            if is_told || watches_children {
                Position::Waits
            } else {
                Position::InVain("does not watch the nearest claim that keeps it out")
            }
        }
    }
}

/// Everybody is done, and nothing is left behind.
pub(super) fn at_the_end(run: &Run) {
    let mut complaints = Vec::new();
    let world = run.world.lock();
    let mut board = run.board.lock();
    for (number, post) in board.posts.iter().enumerate() {
        if !post.done && !world.clients[post.client].dead {
            complaints.push(format!("contender {number} waits for ever"));
        }
    }
    for (path, node) in &world.leader.tree.nodes {
        if let Kind::Ephemeral(session) = node.kind {
            complaints.push(format!("{path} of session {session:#x} is left"));
        }
    }
    for (number, client) in world.clients.iter().enumerate().filter(|(_, client)| !client.dead) {
        let inner = run.clients[number].inner();
        if !inner.duties().are_done() {
            complaints.push(format!("client {number} still has something to delete"));
        }
        // The directory may be watched for as long as there is a lock on it.
        let is_directory = |path: &str| run.scenario.locks().contains(path);
        let is_claim =
            |path: &&String| run.scenario.strategy != Strategy::Queue || !is_directory(path);
        let watched = client.watches.keys().chain(&client.child_watches);
        for path in watched.filter(is_claim).filter(|path| inner.waits_for_event(path)) {
            complaints.push(format!("client {number} still waits for {path}"));
        }
        if inner.has_tasks() && !run.scenario.reduced {
            complaints.push(format!("client {number} has tasks that still run"));
        }
    }
    for (session, life) in &world.leader.sessions {
        let has_it = |client: &super::client::Client| !client.dead && client.session == *session;
        if *life != Life::Closed && !world.clients.iter().any(has_it) {
            complaints.push(format!("session {session:#x} is left"));
        }
    }
    let mut acquires = run.scenario.contenders.iter().flat_map(|contender| &contender.acquires);
    let all_try = acquires.all(|wait| matches!(wait, Wait::Not));
    if all_try && run.scenario.faults == 0 && board.tenures + board.late == 0 {
        complaints.push(format!("all who tried for {LOCK} were sent away, and nobody had it"));
    }
    if !complaints.is_empty() {
        board.complain(|| complaints.join("; "));
    }
}
