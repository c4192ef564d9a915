//! What can go wrong, and what it does on the servers.

use super::client::Connection;
use super::server::{Change, Kind};
use super::steps::Step;
use super::world::World;

/// What litter is called: nothing of a lock's, and a name like a claim's.
const LITTER: [&str; 2] = ["readme", "old-lock-0000000000"];

impl World {
    /// The faults of clients and operators that can happen now.
    pub(super) fn faults(&self, reduced: bool, litter_in: Option<&str>, steps: &mut Vec<Step>) {
        for (number, client) in self.clients.iter().enumerate() {
            if !client.is_running() {
                continue;
            }
            steps.extend([Step::Kill(number), Step::Freeze(number)]);
            if client.connection == Connection::Up {
                steps.push(Step::Cut(number));
                if !client.lost {
                    steps.push(Step::Doubt(number));
                    if reduced {
                        steps.push(Step::Expel(number));
                    }
                }
                let unanswered = client.uplink.iter().any(|request| request.reply.number() != 0);
                if unanswered || !client.downlink.is_empty() {
                    steps.push(Step::TimeOut(number));
                }
            }
        }
        for (path, node) in &self.leader.tree.nodes {
            match node.kind {
                Kind::Ephemeral(_) => steps.push(Step::Rob(node.czxid)),
                Kind::Container
                    if self.leader.tree.children(path).is_some_and(|c| c.is_empty()) =>
                {
                    steps.push(Step::Reap(node.czxid));
                }
                Kind::Container | Kind::Persistent => {}
            }
        }
        if let Some(directory) = litter_in {
            if self.leader.tree.children(directory).is_some_and(|children| !children.is_empty()) {
                steps.push(Step::Raze);
            }
        }
        if let Some(directory) = litter_in.filter(|path| self.leader.tree.get(path).is_some()) {
            for (number, name) in LITTER.iter().enumerate() {
                if self.leader.tree.get(&format!("{directory}/{name}")).is_none() {
                    steps.push(Step::Litter(number as u8));
                }
            }
        }
    }

    /// An operator deletes a claim.
    pub(super) fn rob(&mut self, czxid: i64) {
        self.robbed.insert(czxid);
        self.delete_made_by(czxid);
    }

    /// An operator deletes a directory with all claims in it.
    pub(super) fn raze(&mut self, directory: &str) {
        for name in self.leader.tree.children(directory).unwrap_or_default() {
            let path = format!("{directory}/{name}");
            self.robbed.extend(self.leader.tree.get(&path).map(|node| node.czxid));
            let _ = self.leader.delete(&path);
        }
        let _ = self.leader.delete(directory);
        self.spread();
    }

    /// Somebody puts something into the lock's directory.
    pub(super) fn litter(&mut self, number: u8, lock: &str) {
        self.leader.commit(vec![Change::Create {
            path: format!("{lock}/{}", LITTER[usize::from(number)]),
            kind: Kind::Persistent,
            data: b"zklock/1 nothing".as_slice().into(),
        }]);
        self.spread();
    }

    pub(super) fn delete_made_by(&mut self, czxid: i64) {
        let found = self.leader.tree.nodes.iter().find(|(_, node)| node.czxid == czxid);
        if let Some(path) = found.map(|(path, _)| path.clone()) {
            let _ = self.leader.delete(&path);
        }
        self.spread();
    }
}
