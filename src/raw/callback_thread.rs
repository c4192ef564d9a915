//! The role of a thread in the C client: whether it runs callbacks now, and the handles that it is the completion
//! thread of.

use std::cell::{Cell, RefCell};
use std::sync::Weak;

use super::contexts;
use crate::panics::catch_panic;
use crate::sync::per_thread;

per_thread! {
    static INSIDE: Cell<bool> = Cell::new(false);
}

per_thread! {
    pub(super) static ADOPTED_HERE: Kept = Kept(RefCell::new(Vec::new()), Cell::new(0));
}

/// Work that has to end before its completion thread does.
pub(super) trait EndsWithThread: Send + Sync {
    fn end(&self);
}

/// The work that a completion thread ends before its own end, and its handle's address.
pub(super) struct Kept(RefCell<Vec<Weak<dyn EndsWithThread>>>, Cell<usize>);

/// Whether this thread runs callbacks of the C client. Nothing may wait for an answer here. Nothing may
/// close a handle here either, because a thread can't join itself.
pub(crate) fn inside_callback() -> bool {
    INSIDE.with(Cell::get) || is_completion_thread()
}

/// Runs the Rust side of a callback: marks the thread, and keeps a panic from crossing into C.
pub(super) fn run(body: impl FnOnce()) {
    let outer = INSIDE.with(|inside| inside.replace(true));
    catch_panic(body);
    INSIDE.with(|inside| inside.set(outer));
}

/// Has that ended with this thread, the completion thread of the adopted handle at that address. Gives whether it
/// will be: not if the thread is past that.
pub(super) fn ends_here(adoption: Weak<dyn EndsWithThread>, address: usize) -> bool {
    let kept = ADOPTED_HERE.try_with(|kept| {
        kept.1.set(address);
        let mut kept = kept.0.borrow_mut();
        kept.retain(|adoption| adoption.strong_count() > 0);
        kept.push(adoption);
    });
    kept.is_ok()
}

/// Whether this is the completion thread of an adopted handle.
fn is_completion_thread() -> bool {
    let any = |kept: &Kept| kept.0.borrow().iter().any(|adoption| adoption.strong_count() > 0);
    ADOPTED_HERE.try_with(any).unwrap_or(false)
}

impl Kept {
    pub(super) fn thread_ends(&self) {
        for adoption in self.0.take() {
            if let Some(adoption) = adoption.upgrade() {
                catch_panic(|| adoption.end());
            }
        }
        let address = self.1.take();
        if address != 0 {
            contexts::forget_context_of(address);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.thread_ends();
    }
}
