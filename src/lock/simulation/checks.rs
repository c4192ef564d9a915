//! What must be true at every step, and at the end.

use super::run::Run;
use super::scenario::{Errand, LOCK};
use super::server::Kind;

/// At most one contender believes that it holds.
///
/// Not counted is one whose claim an operator has deleted: it hears of that only afterwards.
pub(super) fn at_every_step(run: &Run) {
    let mut holders = Vec::new();
    {
        let board = run.board.lock();
        for (number, post) in board.posts.iter().enumerate() {
            let Some(tenure) = &post.tenure else { continue };
            let world = run.world.lock();
            let counts =
                !world.clients[post.client].dead && !world.robbed.contains(&tenure.node.czxid);
            drop(world);
            if counts && tenure.ended().is_none() {
                holders.push((number, tenure.node.czxid));
            }
        }
    }
    if let Some(violation) = run.world.lock().violation.take() {
        run.board.lock().complain(|| violation);
    }
    if holders.len() > 1 {
        run.board.lock().complain(|| format!("held by several (contender, token): {holders:?}"));
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
        if !client.doomed.is_empty() {
            complaints.push(format!("client {number} still has something to delete"));
        }
    }
    if run.tasks.len() > 0 {
        complaints.push(format!("{} tasks still run", run.tasks.len()));
    }
    let mut errands = run.scenario.contenders.iter().flat_map(|contender| &contender.errands);
    let all_try = errands.all(|errand| matches!(errand, Errand::Try));
    if all_try && run.scenario.faults == 0 && board.tenures == 0 {
        complaints.push(format!("all who tried for {LOCK} were sent away, and nobody had it"));
    }
    if !complaints.is_empty() {
        board.complain(|| complaints.join("; "));
    }
}
