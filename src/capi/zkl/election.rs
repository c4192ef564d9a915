//! Who of several participants leads.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, Object, free, given, output, status, text};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::zkl::async_calls::{zkl_contenders_fn, zkl_result_fn};
use crate::capi::zkl::attempt::{begin_acquire, guards_of, zkl_attempt, zkl_done_fn};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::contenders::{meant, zkl_contender, zkl_contenders};
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::options::{self, Sharing, zkl_lock_options};
use crate::capi::zkl::present::{OnASession, PresentLock};
use crate::capi::zkl::replies::{Delivery, code, deliver, no_done, with_code};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{limited, timeout, wait};
use crate::capi::zkl::watch::{self, zkl_watch};
use crate::error::Code;
use crate::lock::{Contender, Election, LockError, Strategy};
use crate::runtime::Pending;

/// An election: of those who take part, one leads at a time; see zkl_election_new.
#[allow(non_camel_case_types)]
pub struct zkl_election {
    present: PresentLock,
}

impl Object for zkl_election {
    fn is_inherited(&self) -> bool {
        self.present.is_inherited()
    }
}

impl zkl_election {
    fn at_present(&self) -> (Election, Arc<Shared>) {
        let OnASession { lock, shared, .. } = self.present.at_present();
        (Election::new(lock), shared)
    }

    /// Has the holder of that guard hand over.
    fn handing_over(
        &self,
        name: &'static str,
        guard: &zkl_guard,
        to: &Contender,
    ) -> Result<Pending<bool, LockError>, Failure> {
        let held = guard.held(name)?;
        let election = Election::new(self.present.on(Arc::clone(&guard.shared)).lock);
        if held.path() != election.path() {
            let why = "the guard is not of this election";
            return Err(Failure::bad_argument(name, why));
        }
        Ok(election.led_by(Arc::clone(held)).hand_over(to))
    }
}

/// Whether the chosen one leads.
fn handed(name: &'static str, leads: bool) -> Result<(), Failure> {
    let left = || Failure::new(Code::NOTHING.as_raw(), format!("{name}: it has left the election"));
    leads.then_some(()).ok_or_else(left)
}

/// Makes an election at a path. Sends nothing. Whoever campaigns takes part; the first to come leads, and the next one in
/// the order of their coming when it resigns, dies or loses its session. An election is a lock whose holder leads: that of
/// a zkl_lock in a queue with that path takes part, too.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL; of them `label` is what this participant says
/// of itself, and `acl` counts; strategy and sharing have to be the defaults. All are copied.
///
/// Any thread; does not block. On success `*election` is the program's: free it with zkl_election_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
/// empty or malformed. ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_election_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_lock_options,
    election: Option<&mut MaybeUninit<*mut zkl_election>>,
) -> c_int {
    const NAME: &str = "zkl_election_new";
    status(|| {
        let sessions = &given(NAME, "client", client)?.present;
        let place = output(NAME, "election", election)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let path = unsafe { text(NAME, "path", path) }?;
        // SAFETY: the header asks for a filled struct.
        let how = unsafe { options::contending(NAME, options) }?;
        if how.strategy != Strategy::Queue || !matches!(how.sharing, Sharing::Exclusive) {
            return Err(Failure::bad_argument(NAME, "an election is an exclusive queue"));
        }
        how.strategy.check_path(path).map_err(|why| Failure::bad_argument(NAME, why))?;
        let made = zkl_election { present: PresentLock::new(sessions, path, how) };
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Gives up the election. Who leads goes on to, and so do attempts and watches.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_free(election: Option<Box<zkl_election>>) {
    free(election);
}

/// Takes part until this participant leads, up to `timeout_ms` in all: ZKL_FOREVER waits as long as it takes, 0 looks
/// once.
///
/// Who has the guard leads for as long as it says ZKL_HELD, which ends before another can lead. Its token is the term,
/// which is larger than that of every leader before; zkl_guard_on_lost calls, and zkl_guard_fd becomes readable, when the
/// leadership is lost; zkl_guard_set writes only while it leads; zkl_guard_release and zkl_guard_free resign.
///
/// On connection loss it goes on, as zkl_lock_acquire. When it fails, it takes no part. `pthread_cancel` waits until it
/// has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it with
/// zkl_guard_release or zkl_guard_free.
///
/// ZOK; otherwise as zkl_lock_acquire. ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_campaign(
    election: Option<&zkl_election>,
    timeout_ms: c_int,
    guard: Option<&mut MaybeUninit<*mut zkl_guard>>,
) -> c_int {
    const NAME: &str = "zkl_election_campaign";
    status(|| {
        let election = given(NAME, "election", election)?;
        let place = output(NAME, "guard", guard)?;
        let within = timeout(NAME, timeout_ms)?;
        let (election, shared) = election.at_present();
        shared.may_wait(NAME)?;
        let guard = wait(election.elect(), within)?;
        place.write(Box::into_raw(zkl_guard::boxed(guard, shared)));
        Ok(())
    })
}

/// Begins to take part, and returns; `done` is called when this participant leads. All else is as of
/// zkl_lock_acquire_async, a NULL `done` included; zkl_attempt_cancel ends the participation.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; otherwise as zkl_lock_acquire_async.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_campaign_async(
    election: Option<&zkl_election>,
    timeout_ms: c_int,
    done: zkl_done_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_election_campaign_async";
    status(|| {
        let election = given(NAME, "election", election)?;
        let within = timeout(NAME, timeout_ms)?;
        let (election, shared) = election.at_present();
        let what = format!("campaign {}", election.path().escape_debug());
        let to = (done, Userdata::new(userdata, finalizer));
        let work = || limited(election.elect(), within);
        begin_acquire((NAME, &what), &shared, to, attempt, guards_of(&shared), work)
    })
}

/// Resigns in favour of a participant, of a list of zkl_election_participants, and waits up to `timeout_ms` until it
/// leads: the others whose turn it would be before give way to it, once each, and take part behind it. The guard stays the
/// program's, whatever this returns. Once it has resigned, the guard says ZKL_LOST, with 0 for the reason: `lost`
/// callbacks do not come, and zkl_guard_release gives ZOK.
///
/// There are never two leaders, and terms grow, whatever fails: who leads is decided by the claims alone. Where the chosen
/// one dies or leaves, the next whose turn it is leads. Participants that acquire the lock itself, without an election, do
/// not give way.
///
/// On connection loss it goes on while the session lives. `pthread_cancel` waits until it has ended. In the child of a
/// fork nothing is done.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. Nobody may free or release the guard meanwhile.
///
/// ZOK when the chosen one leads. ZNOTHING when it has left: where zkl_guard_state says ZKL_HELD, it had left before, and
/// this one goes on to lead; otherwise the next one leads. ZKL_NOT_HELD when the leadership was lost before.
/// ZOPERATIONTIMEOUT when the time is over, and ZSESSIONEXPIRED, ZCLOSING or another failure of a guard that is ZKL_LOST:
/// the chosen one may come to lead yet. ZBADARGUMENTS for a NULL, a guard of something else, or another negative timeout;
/// otherwise as zkl_lock_acquire, and nothing was done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_election_hand_over(
    election: Option<&zkl_election>,
    guard: Option<&zkl_guard>,
    to: Option<&zkl_contender>,
    timeout_ms: c_int,
) -> c_int {
    const NAME: &str = "zkl_election_hand_over";
    status(|| {
        let election = given(NAME, "election", election)?;
        let guard = given(NAME, "guard", guard)?;
        // SAFETY: the header asks for an entry of a list of ours, or what looks like one.
        let to = unsafe { meant(NAME, "to", to) }?;
        let within = timeout(NAME, timeout_ms)?;
        guard.shared.may_wait(NAME)?;
        handed(NAME, wait(election.handing_over(NAME, guard, &to)?, within)?)
    })
}

/// As zkl_election_hand_over, without waiting: `done` is called exactly once, on zklock's callback thread of the client,
/// with what that would have returned; `finalizer`, if there is one, after it. They may be called before this returns.
/// When this returns an error, neither is called. The guard may be released or freed meanwhile.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; ZBADARGUMENTS for a NULL election, guard, to or done, a guard of something else, or another
/// negative timeout; ZKL_NOT_HELD for a guard that is given up; ZSYSTEMERROR when there is no thread to be had.
/// Everything else is reported by `done`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_election_hand_over_async(
    election: Option<&zkl_election>,
    guard: Option<&zkl_guard>,
    to: Option<&zkl_contender>,
    timeout_ms: c_int,
    done: zkl_result_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_election_hand_over_async";
    status(|| {
        let election = given(NAME, "election", election)?;
        let guard = given(NAME, "guard", guard)?;
        // SAFETY: the header asks for an entry of a list of ours, or what looks like one.
        let to = unsafe { meant(NAME, "to", to) }?;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let line = guard.shared.callbacks.line(NAME)?;
        let handing = limited(election.handing_over(NAME, guard, &to)?, within);
        let tell = with_code(done, &guard.shared);
        let delivery = Delivery {
            line,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |leads: Result<bool, Failure>, userdata| {
                tell(leads.and_then(|leads| handed(NAME, leads)), userdata);
            }),
        };
        deliver(NAME, &guard.shared, handing, delivery);
        Ok(())
    })
}

fn list(
    function: &'static str,
    election: Option<&zkl_election>,
    place: Option<&mut MaybeUninit<*mut zkl_contenders>>,
    most: usize,
) -> Result<(), Failure> {
    let election = given(function, "election", election)?;
    let place = output(function, "contenders", place)?;
    let OnASession { lock, shared, .. } = election.present.at_present();
    shared.may_wait(function)?;
    let contenders = lock.first_contenders(most).wait()?;
    place.write(Box::into_raw(zkl_contenders::boxed(contenders)));
    Ok(())
}

/// Who leads: a list of one entry, whose token is the term, or of none.
///
/// Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended; ZINVALIDSTATE in the child
/// of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_leader(
    election: Option<&zkl_election>,
    leader: Option<&mut MaybeUninit<*mut zkl_contenders>>,
) -> c_int {
    status(|| list("zkl_election_leader", election, leader, 1))
}

/// Who takes part, in the order in which they will lead: the first of them does.
///
/// Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended; ZINVALIDSTATE in the child
/// of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_participants(
    election: Option<&zkl_election>,
    participants: Option<&mut MaybeUninit<*mut zkl_contenders>>,
) -> c_int {
    status(|| list("zkl_election_participants", election, participants, usize::MAX))
}

/// Asks for a call of `changed` with who leads, now and whenever that has changed: a list of one entry, or of none, which
/// is the program's to free. It takes no part. A leader that came and went between two calls is left out; the next call
/// comes when the one before has returned. Of a hand-over it may show those for a moment who are passed by.
///
/// Calls come on zklock's callback thread of the client until `*watch` is freed, which runs `finalizer`. On connection loss
/// they go on with the next connection or session. With another code than ZOK, and NULL for the list, it has ended: the
/// servers refuse it, or ZINVALIDSTATE, ZCLOSING or ZSESSIONEXPIRED, the client is closed; that of an adopted handle also
/// when its session is over (ask again after zkl_client_follow). `finalizer` runs after that, too.
///
/// It keeps the client's session as a guard does, until it is freed. In the child of a fork nothing is called.
///
/// Any thread, callbacks included; does not block. On success `*watch`, written before `changed` can run, is the program's:
/// end it with zkl_watch_free.
///
/// ZOK; ZBADARGUMENTS for a NULL election, changed or watch; ZSYSTEMERROR when there is no thread to be had;
/// ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_observe(
    election: Option<&zkl_election>,
    changed: zkl_contenders_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    watch: Option<&mut MaybeUninit<*mut zkl_watch>>,
) -> c_int {
    const NAME: &str = "zkl_election_observe";
    status(|| {
        let election = given(NAME, "election", election)?;
        let place = output(NAME, "watch", watch)?;
        let changed = changed.ok_or_else(|| Failure::bad_argument(NAME, "changed is NULL"))?;
        let (election, shared) = election.at_present();
        let userdata = Userdata::new(userdata, finalizer);
        watch::begin(NAME, &shared, userdata, election.observe(), place, move |leader, userdata| {
            let (rc, leader) = code(leader);
            let leader = leader.map(|leader: Option<Contender>| {
                Box::into_raw(zkl_contenders::boxed(leader.into_iter().collect()))
            });
            // SAFETY: the program gave the function for these arguments, to be called on this thread until the watch
            // is freed.
            unsafe { changed(rc, leader.unwrap_or(std::ptr::null_mut()), userdata) };
        })
    })
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_election>();
};
