//! What a session knows of a queue: the names of its oldest elements, as of the last listing.
//!
//! Whatever was added since has a later number, so as long as names are left, the oldest element of
//! all is the first of them that still exists. A long queue need not be listed for each element.
//! All threads of a program see the same line, and nobody has a name for himself: each goes for the
//! oldest element, as consumers in different processes do.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::per_session::PerSession;
use crate::client::Link;

#[derive(Default)]
struct Line {
    /// Oldest first.
    names: VecDeque<String>,
    /// How many of them may still turn out to be gone, taken by other consumers, before it is
    /// cheaper to list the queue again.
    misses: usize,
    /// How many were gone before the latest that was not.
    gone: usize,
}

/// A listing is worth so many requests for one element, and one more for so many names.
const MISSES: usize = 2;
const NAMES_PER_MISS: usize = 64;
/// How many names are looked at at once, at most.
const MOST: usize = 16;

/// By the queue's path.
static LINES: PerSession<HashMap<String, Line>> = PerSession::new();

/// The oldest known names: as many as are likely to be needed until one is found whose element is
/// still there. Empty: list the queue.
pub(super) fn oldest(link: &Arc<Link>, path: &str) -> Vec<String> {
    LINES.with(link, |lines| {
        let Some(line) = lines.get(path) else { return Vec::new() };
        line.names.iter().take((line.gone + 1).min(MOST)).cloned().collect()
    })
}

/// The elements of these names are gone, and the one after them is `found`, or may be gone too.
pub(super) fn gone(link: &Arc<Link>, path: &str, names: &[String], found: bool) {
    LINES.with(link, |lines| {
        let Some(line) = lines.get_mut(path) else { return };
        for name in names {
            line.remove(name);
        }
        line.gone = if found { names.len() } else { line.gone + names.len() };
        match line.misses.checked_sub(names.len()) {
            Some(misses) => line.misses = misses,
            None => line.names.clear(),
        }
    });
}

/// The element of that name was taken here.
pub(super) fn taken(link: &Arc<Link>, path: &str, name: &str) {
    LINES.with(link, |lines| {
        if let Some(line) = lines.get_mut(path) {
            line.remove(name);
        }
    });
}

/// The queue was listed; `names` are in order.
pub(super) fn listed(link: &Arc<Link>, path: &str, names: Vec<String>) {
    LINES.with(link, |lines| {
        if names.is_empty() {
            lines.remove(path);
            return;
        }
        let line = lines.entry(path.to_owned()).or_default();
        line.misses = MISSES + names.len() / NAMES_PER_MISS;
        line.names = names.into();
    });
}

impl Line {
    /// Only the oldest are ever looked at.
    fn remove(&mut self, name: &str) {
        if let Some(at) = self.names.iter().take(MOST).position(|known| known == name) {
            self.names.remove(at);
        }
    }
}
