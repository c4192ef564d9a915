//! What a tree would look like after a history: tells whether transactions can follow it.
//!
//! A leader checks each change against its tree before it proposes it. So a create of what is there,
//! a delete of what is not, and a data version that does not follow the one before show that the
//! leader had another tree.

use std::collections::HashMap;

use super::txn::{Change, Txn};

/// The nodes, and the versions of their data.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    versions: HashMap<String, i32>,
}

impl Tree {
    /// Makes the changes. How many of them could not follow what was there.
    pub fn apply(&mut self, txn: &Txn) -> usize {
        txn.changes.iter().map(|change| usize::from(!self.follows(change))).sum()
    }

    fn follows(&mut self, change: &Change) -> bool {
        match change {
            Change::Create { path, .. } => self.versions.insert(path.clone(), 0).is_none(),
            Change::Delete { path } => self.versions.remove(path).is_some(),
            Change::Set { path, version, .. } => {
                let before = self.versions.insert(path.clone(), *version);
                // What was there before the log began can't be judged.
                before.is_none_or(|before| before.wrapping_add(1) == *version)
            }
            Change::Check { path } => self.versions.contains_key(path),
            Change::Close { paths } => {
                // All of them, also when one is missing.
                paths.iter().filter(|path| self.versions.remove(*path).is_none()).count() == 0
            }
            Change::Open { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contradictions(changes: Vec<Change>) -> usize {
        let txn = Txn { changes, ..Txn::default() };
        Tree::default().apply(&txn)
    }

    #[test]
    fn what_can_not_follow_is_counted() {
        let path = || "/a".to_owned();
        let create = || Change::Create { path: path(), ephemeral: true, data: vec![] };
        let delete = || Change::Delete { path: path() };
        let set = |version| Change::Set { path: path(), data: vec![], version };
        let close = || Change::Close { paths: vec![path()] };
        assert_eq!(contradictions(vec![create(), set(1), set(2), delete(), create(), close()]), 0);
        assert_eq!(contradictions(vec![create(), create()]), 1);
        assert_eq!(contradictions(vec![create(), set(2)]), 1);
        assert_eq!(contradictions(vec![create(), delete(), delete()]), 1);
        assert_eq!(contradictions(vec![create(), close(), Change::Check { path: path() }]), 1);
    }
}
