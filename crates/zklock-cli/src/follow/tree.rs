//! The znodes that are followed, and when each is to be listed again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use zklock::zookeeper::Stat;

use crate::look::locks::{SERVERS_OWN, join};

/// No more are followed: each is a watch, and the servers have to set all of them again after a reconnection.
const MOST: usize = 20_000;
/// How long after a change a znode is listed again.
pub const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Node {
    /// Of the last listing; none before the first.
    pub stat: Option<Stat>,
    pub children: usize,
    pub listed: Option<Instant>,
    /// When its children changed after that, as far as it is known; of a new one, when it came.
    pub changed: Option<SystemTime>,
    /// Claims were among its children.
    pub is_lock: bool,
    /// Those of the children that are followed themselves.
    followed: HashSet<String>,
    /// When it is to be listed, while it waits for that.
    due: Option<Instant>,
}

#[derive(Default)]
pub struct Tree {
    nodes: HashMap<String, Node>,
    due: BinaryHeap<Reverse<(Instant, String)>>,
    /// How many children of each znode are not followed, because there are too many.
    left_out: HashMap<String, usize>,
}

impl Tree {
    pub fn of(root: &str, now: Instant) -> Tree {
        let mut tree = Tree::default();
        tree.add(root.to_owned(), now, None);
        tree
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many znodes are not followed, because there are too many.
    pub fn left_out(&self) -> usize {
        self.left_out.values().sum()
    }

    /// How many are to be listed for the first time before that.
    pub fn unlisted(&self, before: Instant) -> usize {
        let due = |node: &&Node| node.due.is_none_or(|due| due < before);
        self.nodes.values().filter(|node| node.listed.is_none()).filter(due).count()
    }

    pub fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    pub fn node_mut(&mut self, path: &str) -> Option<&mut Node> {
        self.nodes.get_mut(path)
    }

    fn add(&mut self, path: String, now: Instant, changed: Option<SystemTime>) {
        if self.nodes.len() < MOST && !self.has(&path) {
            self.nodes.insert(path.clone(), Node { changed, ..Node::default() });
            self.plan(&path, now);
        }
    }

    /// It is to be listed at that time, or before, if it is followed.
    pub fn plan(&mut self, path: &str, at: Instant) {
        let Some(node) = self.nodes.get_mut(path) else { return };
        if node.due.is_none_or(|due| at < due) {
            node.due = Some(at);
            self.due.push(Reverse((at, path.to_owned())));
        }
    }

    /// The time of the next that is to be listed.
    pub fn next_due(&mut self) -> Option<Instant> {
        loop {
            let Reverse((at, path)) = self.due.peek()?;
            match self.nodes.get(path) {
                Some(node) if node.due == Some(*at) => return Some(*at),
                // It went, or was listed sooner.
                _ => self.due.pop(),
            };
        }
    }

    /// One that is to be listed by now.
    pub fn take_due(&mut self, now: Instant) -> Option<String> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((_, path)) = self.due.pop()?;
        self.nodes.get_mut(&path)?.due = None;
        Some(path)
    }

    /// These of its children are to be followed, as far as there is room, since that time, if it is known. Gives the
    /// paths that are no longer.
    pub fn listed(
        &mut self,
        path: &str,
        children: &[&String],
        now: Instant,
        changed: Option<SystemTime>,
    ) -> Vec<String> {
        let children = children.iter().map(|name| join(path, name));
        let children: HashSet<String> = children.filter(|path| path != SERVERS_OWN).collect();
        for child in &children {
            self.add(child.clone(), now, changed);
        }
        let left_out = children.iter().filter(|child| !self.has(child)).count();
        self.left_out.insert(path.to_owned(), left_out);
        self.left_out.retain(|_, left_out| *left_out > 0);
        let Some(node) = self.nodes.get_mut(path) else { return Vec::new() };
        let before = std::mem::replace(&mut node.followed, children);
        let gone: Vec<String> = before.difference(&node.followed).cloned().collect();
        let gone: Vec<String> = gone.iter().flat_map(|path| self.remove(path)).collect();
        if !gone.is_empty() && self.len() < MOST {
            // There is room for those that were left out.
            let parents: Vec<String> = self.left_out.keys().cloned().collect();
            parents.iter().for_each(|parent| self.plan(parent, now + PAUSE));
        }
        gone
    }

    /// It is gone, with all below it.
    pub fn remove(&mut self, path: &str) -> Vec<String> {
        let mut gone = vec![path.to_owned()];
        let mut at = 0;
        while let Some(path) = gone.get(at) {
            self.left_out.remove(path);
            if let Some(node) = self.nodes.remove(path) {
                gone.extend(node.followed);
            }
            at += 1;
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_twice_is_listed_once_and_at_the_earlier_time() {
        let now = Instant::now();
        let mut tree = Tree::of("/a", now);
        let later = now + Duration::from_secs(1);
        tree.plan("/a", later);
        assert_eq!(tree.take_due(now).as_deref(), Some("/a"));
        assert_eq!(tree.take_due(later), None);
        tree.plan("/a", later);
        tree.plan("/a", now);
        assert_eq!(tree.next_due(), Some(now));
        assert_eq!(tree.take_due(later).as_deref(), Some("/a"));
        assert_eq!(tree.next_due(), None);
    }

    #[test]
    fn what_is_gone_goes_with_all_below_it() {
        let now = Instant::now();
        let mut tree = Tree::of("/", now);
        let names = ["zookeeper".to_owned(), "a".to_owned()];
        assert!(tree.listed("/", &names.iter().collect::<Vec<_>>(), now, None).is_empty());
        tree.listed("/a", &[&"b".to_owned()], now, None);
        assert_eq!(tree.len(), 3);
        assert_eq!(tree.listed("/", &[], now, None), ["/a", "/a/b"]);
        assert_eq!(tree.len(), 1);
    }

    #[test]
    fn there_are_no_more_than_can_be_watched() {
        let now = Instant::now();
        let mut tree = Tree::of("/", now);
        let names: Vec<String> = (0..MOST).map(|number| format!("n{number}")).collect();
        tree.listed("/", &names.iter().collect::<Vec<_>>(), now, None);
        assert_eq!((tree.len(), tree.left_out()), (MOST, 1));
        while tree.take_due(now).is_some() {}
        // A second listing counts it once. When another child is gone, it is followed.
        tree.listed("/", &names.iter().collect::<Vec<_>>(), now, None);
        assert_eq!((tree.len(), tree.left_out()), (MOST, 1));
        tree.listed("/", &names[1..].iter().collect::<Vec<_>>(), now, None);
        assert_eq!(tree.next_due(), Some(now + PAUSE), "not at once");
        tree.listed("/", &names[1..].iter().collect::<Vec<_>>(), now, None);
        assert_eq!((tree.len(), tree.left_out()), (MOST, 0));
    }
}
