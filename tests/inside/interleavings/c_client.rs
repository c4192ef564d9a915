//! What stands for the C client in a model: of the functions that the tables, the gate and the adoptions
//! need, what they promise and no more. The rest are the C client's own, and are not called.
//!
//! A handle has a completion thread and a queue. Closing it joins the thread. What is queued by then
//! is answered by the closing thread, or never. A handle is never really freed: the checker and an
//! assertion tell of a call beside its close or after it, and of a write to a multi's memory that is
//! gone.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;
pub(crate) use zookeeper_sys::*;

use crate::raw::callback_thread::{ADOPTED_HERE, Kept};

/// The host string of a handle that answers what is left when it is closed; others never do.
pub(super) const ANSWERS_WHAT_IS_LEFT: &str = "answers-what-is-left";
/// The host string of a handle that has no memory for its second request.
pub(super) const REFUSES_THE_SECOND: &str = "refuses-the-second";
/// A path of which the C client takes no request.
pub(super) const REFUSED: &str = "/refused";

const BAD_ARGUMENTS: c_int = -8;
const CLOSING: c_int = -116;
const CONNECTED: c_int = 3;
const MARSHALLING_ERROR: c_int = -5;

struct Client {
    place: Place,
    requests: Mutex<Requests>,
    changed: Condvar,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    answers_what_is_left: bool,
    refuses_the_second: bool,
}

#[derive(Default)]
struct Requests {
    closing: bool,
    /// How many there were.
    count: usize,
    queued: VecDeque<Request>,
}

struct Request {
    completion: Completion,
    context: usize,
}

enum Completion {
    String(string_completion_t),
    Stat(stat_completion_t),
    Multi(void_completion_t, Arc<Place>),
}

/// Memory that is read, or written, by those who may, until it is freed.
struct Place(UnsafeCell<bool>);

// SAFETY: the checker watches every access to the cell, and fails where two are not in order.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    fn new() -> Place {
        Place(UnsafeCell::new(true))
    }

    fn read(&self) {
        self.0.with(|lives| {
            // SAFETY: the checker has seen to it that nobody writes.
            assert!(unsafe { *lives }, "a read of memory that was freed");
        });
    }

    fn write(&self) {
        self.0.with_mut(|lives| {
            // SAFETY: the checker has seen to it that nobody else is here.
            assert!(unsafe { *lives }, "a write to memory that was freed");
        });
    }

    fn free(&self) {
        self.write();
        self.0.with_mut(|lives| {
            // SAFETY: as in `write`.
            unsafe { *lives = false }
        });
    }
}

/// What lives as long as a run of the model. Behind a lock of std's, which the checker does not see:
/// what is looked up here must not put in order what the code under test does not.
#[derive(Default)]
struct World {
    clients: Vec<Arc<Client>>,
    multis: HashMap<usize, Arc<Place>>,
}

loom::lazy_static! {
    static ref WORLD: std::sync::Mutex<World> = std::sync::Mutex::default();
}

fn world() -> std::sync::MutexGuard<'static, World> {
    WORLD.lock().expect("no panic in a model")
}

fn client(zh: *mut zhandle_t) -> Arc<Client> {
    let clients = &world().clients;
    let found = clients.iter().find(|client| Arc::as_ptr(client).addr() == zh.addr());
    Arc::clone(found.expect("a handle that was opened here"))
}

impl Request {
    fn answer(self, rc: c_int) {
        let context = std::ptr::without_provenance(self.context);
        match self.completion {
            Completion::String(function) => {
                let function = function.expect("a completion");
                // SAFETY: the context is a number, and no string is allowed.
                unsafe { function(rc, std::ptr::null(), context) }
            }
            Completion::Stat(function) => {
                let function = function.expect("a completion");
                // SAFETY: plain C data: all zeroes is a valid value of it.
                let stat: Stat = unsafe { std::mem::zeroed() };
                // SAFETY: the context is a number; the stat outlives the call.
                unsafe { function(rc, &stat, context) }
            }
            Completion::Multi(function, results) => {
                results.write();
                // SAFETY: the context is a number.
                unsafe { function.expect("a completion")(rc, context) }
            }
        }
    }
}

impl Client {
    fn accept(&self, completion: Completion, context: *const c_void) -> c_int {
        self.place.read();
        let mut requests = self.requests.lock().expect("no panic in a model");
        requests.count += 1;
        let is_refused = self.refuses_the_second && requests.count == 2;
        // Short of memory it still completes a multi.
        let completes = !is_refused || matches!(completion, Completion::Multi(..));
        if completes && !requests.closing {
            requests.queued.push_back(Request { completion, context: context.addr() });
            self.changed.notify_all();
        }
        let rc = if requests.closing || is_refused { MARSHALLING_ERROR } else { 0 };
        drop(requests);
        self.place.read();
        rc
    }

    fn next(&self) -> Option<Request> {
        let mut requests = self.requests.lock().expect("no panic in a model");
        loop {
            if requests.closing {
                return None;
            }
            if let Some(request) = requests.queued.pop_front() {
                return Some(request);
            }
            requests = self.changed.wait(requests).expect("no panic in a model");
        }
    }

    fn complete_until_closed(&self) {
        while let Some(request) = self.next() {
            request.answer(0);
        }
        // A thread that is joined has run the destructors of its thread-locals; the checker's has not.
        let _ = ADOPTED_HERE.try_with(Kept::thread_ends);
    }

    fn close(&self) {
        self.place.read();
        self.requests.lock().expect("no panic in a model").closing = true;
        self.changed.notify_all();
        let thread = self.thread.lock().expect("no panic in a model").take();
        thread.expect("a handle is closed once").join().expect("no panic in a model");
        let left = std::mem::take(&mut self.requests.lock().expect("no panic in a model").queued);
        if self.answers_what_is_left {
            left.into_iter().for_each(|request| request.answer(CLOSING));
        }
        self.place.free();
    }
}

/// A multi's results are gone.
pub(in crate::raw) fn is_freed(results: *const zoo_op_result_t) {
    let place = world().multis.remove(&results.addr());
    if let Some(place) = place {
        place.free();
    }
}

pub(crate) unsafe fn zookeeper_init2(
    host: *const c_char,
    _watcher: watcher_fn,
    _recv_timeout: c_int,
    _client_id: *const clientid_t,
    _context: *mut c_void,
    _flags: c_int,
    _log: log_callback_fn,
) -> *mut zhandle_t {
    // SAFETY: the caller gives a NUL-terminated string.
    let host = unsafe { CStr::from_ptr(host) };
    let client = Arc::new(Client {
        place: Place::new(),
        requests: Mutex::default(),
        changed: Condvar::new(),
        thread: Mutex::default(),
        answers_what_is_left: host.to_bytes() == ANSWERS_WHAT_IS_LEFT.as_bytes(),
        refuses_the_second: host.to_bytes() == REFUSES_THE_SECOND.as_bytes(),
    });
    let own = Arc::clone(&client);
    let thread = thread::spawn(move || own.complete_until_closed());
    *client.thread.lock().expect("no panic in a model") = Some(thread);
    let zh = Arc::as_ptr(&client).cast_mut().cast();
    world().clients.push(client);
    zh
}

pub(crate) unsafe fn zookeeper_close(zh: *mut zhandle_t) -> c_int {
    client(zh).close();
    0
}

pub(crate) unsafe fn zoo_set_servers_resolution_delay(zh: *mut zhandle_t, _: c_int) -> c_int {
    client(zh).place.read();
    0
}

pub(crate) unsafe fn zoo_state(zh: *mut zhandle_t) -> c_int {
    client(zh).place.read();
    CONNECTED
}

pub(crate) unsafe fn zoo_recv_timeout(zh: *mut zhandle_t) -> c_int {
    client(zh).place.read();
    10_000
}

pub(crate) unsafe fn zoo_async(
    zh: *mut zhandle_t,
    path: *const c_char,
    completion: string_completion_t,
    context: *const c_void,
) -> c_int {
    // SAFETY: the caller gives a NUL-terminated string.
    if unsafe { CStr::from_ptr(path) }.to_bytes() == REFUSED.as_bytes() {
        client(zh).place.read();
        return BAD_ARGUMENTS;
    }
    client(zh).accept(Completion::String(completion), context)
}

pub(crate) unsafe fn zoo_aexists(
    zh: *mut zhandle_t,
    _path: *const c_char,
    _watch: c_int,
    completion: stat_completion_t,
    context: *const c_void,
) -> c_int {
    client(zh).accept(Completion::Stat(completion), context)
}

pub(crate) unsafe fn zoo_amulti(
    zh: *mut zhandle_t,
    _count: c_int,
    _ops: *const zoo_op_t,
    results: *mut zoo_op_result_t,
    completion: void_completion_t,
    context: *const c_void,
) -> c_int {
    let place = Arc::new(Place::new());
    world().multis.insert(results.addr(), Arc::clone(&place));
    client(zh).accept(Completion::Multi(completion, place), context)
}

pub(crate) unsafe fn zoo_delete_op_init(_: *mut zoo_op_t, _: *const c_char, _: c_int) {}
