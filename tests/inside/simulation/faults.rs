//! What can go wrong, and what it does on the servers.

use super::client::{Connection, Silence};
use super::request::Request;
use super::server::{Change, Kind, New, Record, Znode, number, parent};
use super::share::Share;
use super::steps::Step;
use super::world::World;
use crate::znode::Stat;
use crate::zookeeper::claim::payload;
use crate::zookeeper::kinds::limit::Limit;
use crate::zookeeper::name;

/// What litter is called: nothing of a lock's, and like a claim of the number that was given last.
fn litter(number: u8, given: i32) -> String {
    if number == 0 { "readme".to_owned() } else { format!("zz-lock-{given:010}") }
}

impl World {
    /// The faults of clients and operators that can happen now.
    pub(super) fn faults(
        &self,
        reduced: bool,
        lock: &str,
        litter_in: Option<&str>,
        steps: &mut Vec<Step>,
    ) {
        for (number, client) in self.clients.iter().enumerate() {
            if !client.is_running() {
                continue;
            }
            steps.extend([Step::Kill(number), Step::Freeze(number)]);
            if client.connection == Connection::Up {
                steps.push(Step::Cut(number));
                if client.clock < self.end_of_trust(number) {
                    steps.push(Step::Doubt(number));
                    if reduced {
                        steps.push(Step::Expel(number));
                    }
                }
                if client.requests().any(Request::is_awaited) {
                    steps.push(Step::TimeOut(number));
                }
                if client.silence.is_none() {
                    let kinds = [Silence::Deaf, Silence::Mute, Silence::Isolated];
                    steps.extend(kinds.map(|kind| Step::Silence(number, kind)));
                }
            }
        }
        for (path, node) in &self.leader.tree.nodes {
            match node.kind {
                Kind::Ephemeral(_) => {
                    let number = number(path, node.czxid);
                    steps.push(Step::Rob(number));
                    // The servers refuse it otherwise.
                    if !node.is_protected {
                        steps.push(Step::Write(number));
                    }
                }
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
                steps.extend([Step::Raze, Step::Remake]);
            }
            if let Some(limit) = self.limit(directory) {
                let least = limit.saturating_sub(1).max(self.limits.0.max(2));
                let others = [least, limit + 1].into_iter().filter(|other| *other != limit);
                steps.extend(others.map(Step::Limit));
            }
        }
        let has_room = match litter_in {
            Some(directory) => self.leader.tree.get(directory).is_some(),
            None => self.leader.tree.get(lock).is_none(),
        };
        if has_room && self.foreign.is_none() && self.leader.tree.get(parent(lock)).is_some() {
            steps.push(Step::Foreign);
        }
        if let Some(directory) = litter_in.filter(|path| self.leader.tree.get(path).is_some()) {
            for number in 0..2 {
                if self.leader.tree.get(&self.litter_at(number, directory)).is_none() {
                    steps.push(Step::Litter(number));
                }
            }
        }
    }

    /// An operator deletes a claim.
    pub(super) fn rob(&mut self, claim: i64) {
        if let Some(path) = self.path_of(claim) {
            self.note_robbed(&path);
        }
        self.delete_numbered(claim);
    }

    /// The claim at that path is about to be deleted without its owner's doing.
    pub(super) fn note_robbed(&mut self, path: &str) {
        if let Some(czxid) = self.leader.tree.get(path).map(|node| node.czxid) {
            self.robbed.insert(number(path, czxid), self.may_hold(path, czxid));
        }
    }

    /// Whether no claim is there that stands before it and keeps it out.
    pub(super) fn may_hold(&self, path: &str, czxid: i64) -> bool {
        let (tree, share) = (&self.leader.tree, Share::of(path));
        let others = tree.nodes.iter().filter(|(other, node)| {
            *other != path
                && matches!(node.kind, Kind::Ephemeral(_))
                && parent(other) == parent(path)
                && name::sequence(name::last(other)).is_some()
        });
        let earlier = others.filter(|(other, node)| {
            self.stands_before((name::last(other), node.czxid), (name::last(path), czxid))
        });
        let earlier = earlier.map(|(other, _)| Share::of(other));
        !share.is_kept_out_by(earlier, self.limits.1)
    }

    /// Whether that claim is before ours, by its name and the transaction that made it. Where one of them is in the place of
    /// another claim, by its number. Who upgrades in the place of a writer is before those whom that has kept out, and
    /// may find that it had gone: so that says nothing, but whose it is may not hold with others, which is checked as well.
    fn stands_before(&self, other: (&str, i64), own: (&str, i64)) -> bool {
        let number = |(name, _): (&str, i64)| {
            name::sequence(name).filter(|number| !name::is_out_of_turn(*number))
        };
        let is_lower = || match (number(other), number(own)) {
            (Some(other), Some(own)) => other.wrapping_sub(own) < 0,
            _ => false,
        };
        let is_placed = |(name, _): (&str, i64)| name::is_in_anothers_place(name);
        if name::is_upgrade(own.0) {
            // Writers that are earlier may be on their way out; and of those that wait, ours took the first one's place.
            // What takes the place of the hold's first claim is its own.
            let is_own = || self.are_of_one_hold(other.1, own.1);
            let counts = !is_placed(other) || self.robbed.is_empty() && !is_own();
            return Share::of(other.0) == Share::Reads && is_lower() && counts;
        }
        match (is_placed(other), is_placed(own)) {
            (true, _) if name::is_upgrade(other.0) => false,
            (false, true) if name::is_upgrade(other.0) => false,
            (false, false) => other.1 < own.1,
            // Who lost its claim to an operator may put another in its place when others hold already.
            (true, _) => self.robbed.is_empty() && is_lower(),
            (false, true) => is_lower(),
        }
    }

    /// Whether those claims were made by one session, for one acquire.
    fn are_of_one_hold(&self, one: i64, other: i64) -> bool {
        let of = |czxid| self.leader.records.get(&czxid);
        let label =
            |record: &Record| payload::read(String::new(), &record.data, &Stat::default()).label;
        let (Some(one), Some(other)) = (of(one), of(other)) else { return false };
        one.session == other.session && label(one) == label(other)
    }

    /// Somebody sets a claim's data: every other one's to something else, the others' with a line more.
    pub(super) fn write(&mut self, claim: i64) {
        if let Some(path) = self.path_of(claim) {
            let mut data = self.leader.tree.get(&path).map(|node| node.data.to_vec());
            let data = data.take_if(|_| claim / 2 % 2 == 0).unwrap_or_default();
            let data = [data.as_slice(), b"seen\n"].concat().into();
            self.leader.commit(vec![Change::Write { path, data }]);
        }
        self.spread();
    }

    /// How many permits a semaphore has, as its directory says.
    pub(super) fn limit(&self, directory: &str) -> Option<u32> {
        let directory = self.leader.tree.get(directory)?;
        Limit::read(&directory.data).map(|limit| limit.now)
    }

    /// Somebody sets how many permits there are.
    pub(super) fn set_limit(&mut self, number: u32, directory: &str) {
        let Some(node) = self.leader.tree.get(directory) else { return };
        let data = Limit::after(&node.data, node.version == 0, number).write().into();
        let path = format!("{directory}/zl-limit");
        let child = New::plain(Kind::Persistent, b"").at(&path);
        let write = Change::Write { path: directory.to_owned(), data };
        self.leader.commit(vec![write, child, Change::Delete { path }]);
        self.limits = (self.limits.0.min(number), self.limits.1.max(number));
        self.spread();
    }

    /// Another library's contender makes its claim.
    pub(super) fn enter_foreign(&mut self, lock: &str, in_queue: bool) {
        let session = self.leader.open_session();
        let path = if in_queue { format!("{lock}/_c_5f0e-lock-") } else { lock.to_owned() };
        let claim = New::plain(Kind::Ephemeral(session), b"192.168.0.1");
        let _ = self.leader.create(&path, &New { sequential: in_queue, ..claim });
        self.foreign = Some(session);
        self.spread();
    }

    /// It goes.
    pub(super) fn leave_foreign(&mut self) {
        if let Some(session) = self.foreign.take() {
            self.close_session(session);
        }
    }

    /// An operator deletes a directory with all claims in it.
    pub(super) fn raze(&mut self, directory: &str) {
        for name in self.leader.tree.children(directory).unwrap_or_default() {
            let path = format!("{directory}/{name}");
            self.note_robbed(&path);
            let _ = self.leader.delete(&path, false);
        }
        let _ = self.leader.delete(directory, false);
        self.spread();
    }

    /// He makes it anew at once: its numbers begin again.
    pub(super) fn remake(&mut self, directory: &str) {
        self.raze(directory);
        let _ = self.leader.create(directory, &New::plain(Kind::Container, b""));
        self.spread();
    }

    fn litter_at(&self, number: u8, directory: &str) -> String {
        let next = self.leader.tree.get(directory).map_or(0, |directory| directory.sequence);
        format!("{directory}/{}", litter(number, next.wrapping_sub(1)))
    }

    /// Somebody puts something into the lock's directory.
    pub(super) fn litter(&mut self, number: u8, lock: &str) {
        let litter = New::plain(Kind::Persistent, b"zklock/1 nothing");
        self.leader.commit(vec![litter.at(&self.litter_at(number, lock))]);
        self.spread();
    }

    pub(super) fn delete_numbered(&mut self, claim: i64) {
        if let Some(path) = self.path_of(claim) {
            let _ = self.leader.delete(&path, false);
        }
        self.spread();
    }

    pub(super) fn path_of(&self, claim: i64) -> Option<String> {
        let is_it = |(path, node): &(&String, &Znode)| number(path, node.czxid) == claim;
        let found = self.leader.tree.nodes.iter().find(is_it);
        found.map(|(path, _)| path.clone())
    }
}
