//! Deletes a znode with all that is below it.

use std::sync::Arc;

use super::operations::checked;
use super::{Client, Link};
use crate::error::{Code, Result};
use crate::runtime::Pending;

/// How many deletions are in flight at once.
const AT_ONCE: usize = 256;
/// How often a znode is listed again while other clients create children in it.
const LOOKS: u32 = 100;

impl Client {
    /// Deletes a znode and everything below it, ephemeral znodes of other sessions included. It takes several requests.
    /// Znodes that are created meanwhile are deleted too, or keep the znode from being deleted.
    ///
    /// # Errors
    /// - `NO_NODE`: the znode does not exist.
    /// - `NOT_EMPTY`: other clients keep creating znodes below it.
    /// - `BAD_ARGUMENTS`: the path is `/`, which cannot be deleted.
    ///
    /// # On connection loss
    /// Some of the znodes may be deleted. Call it again to delete the others.
    ///
    /// # Cancel safety
    /// If it is dropped, some of the znodes may be deleted.
    pub fn delete_all(&self, path: &str) -> Pending<()> {
        let link = checked!(self.inner().link("delete", path));
        let root = path.to_owned();
        Pending::run("delete", path, async move { delete_tree(&link, root).await })
    }
}

async fn delete_tree(link: &Arc<Link>, root: String) -> Result<()> {
    // Deepest last. The root's absence is an error; that of the others is what was wanted.
    let mut left = vec![(root, 0)];
    while let Some((path, looks)) = left.pop() {
        match link.delete(&path, None).await {
            Ok(()) => continue,
            Err(error) if error.is_no_node() && (looks > 0 || !left.is_empty()) => continue,
            Err(error) if error.code() == Code::NOT_EMPTY && looks < LOOKS => {}
            Err(error) => return Err(error),
        }
        let names = match link.children(&path).await {
            Ok(listed) => listed.names,
            Err(error) if error.is_no_node() => continue,
            Err(error) => return Err(error),
        };
        let children: Vec<_> = names.iter().map(|name| format!("{path}/{name}")).collect();
        left.push((path, looks + 1));
        for some in children.chunks(AT_ONCE) {
            // Most of them are leaves.
            let deletions: Vec<_> =
                some.iter().map(|child| (child, link.delete(child, None))).collect();
            for (child, deletion) in deletions {
                match deletion.await {
                    Err(error) if error.code() == Code::NOT_EMPTY => left.push((child.clone(), 1)),
                    Err(error) if !error.is_no_node() => return Err(error),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}
