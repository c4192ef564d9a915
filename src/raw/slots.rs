//! Where the receivers of completions wait, and the numbers that name them to the C client.
//!
//! One table for the process. A slot leaves it exactly once, and the code that takes it answers it: the completion, the
//! refusal of the request, or the sweep after a close.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::handle::Sink;
use super::multi::{MultiMemory, RawOpResult};
use super::on_the_way::OnTheWay;
use crate::error::Code;
use crate::panics::catch_panic;
use crate::process::Process;
use crate::sync::{AtomicUsize, Mutex, per_process};
use crate::znode::{Acl, Stat};

/// A sink, by the shape of the completion that fills it.
pub(super) enum Receiver {
    Void(Sink<()>),
    Stat(Sink<Stat>),
    Data(Sink<(Vec<u8>, Stat)>),
    Children(Sink<(Vec<String>, Stat)>),
    Created(Sink<(String, Stat)>),
    Acl(Sink<(Vec<Acl>, Stat)>),
    Multi(Sink<Vec<RawOpResult>>),
}

impl Receiver {
    pub(super) fn fail(self, code: Code) {
        match self {
            Receiver::Void(sink) => sink(Err(code)),
            Receiver::Stat(sink) => sink(Err(code)),
            Receiver::Data(sink) => sink(Err(code)),
            Receiver::Children(sink) => sink(Err(code)),
            Receiver::Created(sink) => sink(Err(code)),
            Receiver::Acl(sink) => sink(Err(code)),
            Receiver::Multi(sink) => sink(Err(code)),
        }
    }
}

pub(super) struct Slot {
    /// The handle that the request went through: see [`sweep`].
    pub(super) handle: usize,
    pub(super) deadline: Option<Instant>,
    /// Empty once the deadline has answered; the slot then only waits for the C client to be done.
    pub(super) receiver: Option<Receiver>,
    /// The memory that the C client writes to until the completion has run.
    pub(super) memory: Option<MultiMemory>,
    /// Counts it among the requests in flight, once it is one.
    pub(super) on_the_way: Option<OnTheWay>,
}

impl Slot {
    pub(super) fn fail(self, code: Code) {
        if let Some(receiver) = self.receiver {
            receiver.fail(code);
        }
    }
}

/// Many threads submit and complete at once; sixteen locks keep them from queueing at one.
const SHARDS: usize = if cfg!(zklock_loom) { 2 } else { 16 };

type Shard = Mutex<HashMap<usize, Slot>>;

struct Table {
    shards: [Shard; SHARDS],
    next: AtomicUsize,
}

per_process! {
    static TABLE: Table = Table {
        shards: std::array::from_fn(|_| Mutex::new(HashMap::new())),
        next: AtomicUsize::new(first_number()),
    };
}

/// The first number. A child process has other numbers than its parent: closing the parent's handle here may still run
/// the parent's callbacks.
pub(super) fn first_number() -> usize {
    ((Process::this().forks() as usize) << (usize::BITS - 8)) | 1
}

fn shard(token: usize) -> &'static Shard {
    &TABLE.shards[token % SHARDS]
}

/// A slot's name, shaped as a context for the C client. It is a number, never followed.
pub(super) fn context(token: usize) -> *const c_void {
    std::ptr::without_provenance(token)
}

/// Files a slot under a new number.
pub(super) fn put(slot: Slot) -> usize {
    loop {
        let token = TABLE.next.fetch_add(1, Ordering::Relaxed);
        let mut shard = shard(token).lock();
        // After a wrap (32-bit machines only) a number may still be in use, and 0 means none.
        if token != 0 && !shard.contains_key(&token) {
            shard.insert(token, slot);
            return token;
        }
    }
}

/// Takes the slot out of the table; `None` if somebody answered it before.
pub(super) fn take(token: usize) -> Option<Slot> {
    shard(token).lock().remove(&token)
}

/// Answers a request that was not sent, unless somebody did before.
pub(super) fn fail(token: usize, code: Code) {
    if let Some(slot) = take(token) {
        slot.fail(code);
    }
}

/// Answers a request that the C client had no memory to send, unless somebody did before. It may run the completion all the
/// same, and write to the request's memory before: that stays.
pub(super) fn fail_unsent(token: usize, code: Code) {
    let mut shard = shard(token).lock();
    let Some(slot) = shard.get_mut(&token).filter(|slot| slot.memory.is_some()) else {
        drop(shard);
        return fail(token, code);
    };
    let receiver = slot.receiver.take();
    drop(shard);
    if let Some(receiver) = receiver {
        receiver.fail(code);
    }
}

/// Answers a request that still waits to be sent, unless somebody did before.
pub(super) fn fail_waiting(token: usize, code: Code) {
    let slot = {
        let mut shard = shard(token).lock();
        let waits = shard.get(&token).is_some_and(|slot| slot.on_the_way.is_none());
        if waits { shard.remove(&token) } else { None }
    };
    if let Some(slot) = slot {
        slot.fail(code);
    }
}

/// A request that waited is sent now. Where nobody waits for it any more, it leaves the table; what is
/// given back then must be dropped outside of the window's lock.
pub(super) fn set_on_the_way(
    token: usize,
    on_the_way: OnTheWay,
) -> Option<(Option<Slot>, OnTheWay)> {
    let mut shard = shard(token).lock();
    match shard.get_mut(&token) {
        Some(slot) if slot.receiver.is_some() => {
            slot.on_the_way = Some(on_the_way);
            None
        }
        _ => Some((shard.remove(&token), on_the_way)),
    }
}

#[cfg(zklock_loom)]
pub(super) fn len() -> usize {
    TABLE.shards.iter().map(|shard| shard.lock().len()).sum()
}

/// Frees what the table does not need now.
#[cfg(feature = "capi")]
pub(super) fn shrink() {
    for shard in &TABLE.shards {
        shard.lock().shrink_to_fit();
    }
}

/// Takes all slots of a handle that the C client has freed.
pub(super) fn sweep(handle: usize) -> Vec<Slot> {
    let mut swept = Vec::new();
    for shard in &TABLE.shards {
        let mut shard = shard.lock();
        let tokens: Vec<usize> = shard
            .iter()
            .filter(|(_, slot)| slot.handle == handle)
            .map(|(token, _)| *token)
            .collect();
        swept.extend(tokens.iter().filter_map(|token| shard.remove(token)));
    }
    swept
}

/// Answers every request of an adopted handle with `CLOSING`. The C client may go on for a while,
/// so what it writes to stays.
pub(super) fn abandon(handle: usize) {
    let (mut receivers, mut done) = (Vec::new(), Vec::new());
    for shard in &TABLE.shards {
        shard.lock().retain(|_, slot| {
            if slot.handle != handle {
                return true;
            }
            receivers.extend(slot.receiver.take());
            let is_written_to = slot.memory.is_some() && slot.on_the_way.is_some();
            if !is_written_to {
                done.extend(slot.on_the_way.take());
            }
            is_written_to
        });
    }
    // Outside of the table's locks: to be counted off, they take another.
    drop(done);
    for receiver in receivers {
        catch_panic(|| receiver.fail(Code::CLOSING));
    }
}

/// Whether somebody waits for the answer.
pub(super) fn waits(token: usize) -> bool {
    shard(token).lock().get(&token).is_some_and(|slot| slot.receiver.is_some())
}

/// Takes the receiver of a request that is past its deadline. The slot stays: the C client may still write to its memory,
/// and still owes its completion.
pub(super) fn take_receiver(token: usize) -> Option<Receiver> {
    shard(token).lock().get_mut(&token)?.receiver.take()
}
