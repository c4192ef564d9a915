//! Elections: one of several participants leads.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use crate::capi::boundary::{Failure, Object, Unfreed, free, given, output, status, text};
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
use crate::lock::{Contender, Election, Guard, LockError, Strategy};
use crate::runtime::Pending;

/// An election: one participant leads at a time; see zkl_election_new.
#[allow(non_camel_case_types)]
pub struct zkl_election {
    present: PresentLock,
    unfreed: Unfreed,
}

impl Object for zkl_election {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
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

/// Makes an election at a path. Sends nothing. A participant joins by zkl_election_campaign. The first to join leads.
/// When it resigns, dies or loses its session, the next one leads, in the order in which they joined. An election is a
/// lock, and its holder leads. A client that acquires a zkl_lock in a queue with that path takes part too.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL. Its `label` describes this participant, and
/// `acl` applies; strategy and sharing must be the defaults. All are copied.
///
/// Any thread; does not block. On success `*election` is the program's: free it with zkl_election_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
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
        how.strategy.check_path(path).map_err(|why| Failure::bad_path(NAME, path, why))?;
        let present = PresentLock::new(sessions, path, how);
        let made = zkl_election { present, unfreed: Unfreed::new() };
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Frees the election. Leaders, attempts and watches continue.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_free(election: Option<Box<zkl_election>>) {
    free(election);
}

/// Takes part until this participant leads, up to `timeout_ms` in total: ZKL_FOREVER waits without a limit, 0 checks
/// once.
///
/// It leads while its guard is ZKL_HELD, which ends before another can lead. zkl_guard_token is the term, and larger
/// than that of every earlier leader. zkl_guard_on_lost and zkl_guard_fd report a loss of the leadership. zkl_guard_set
/// writes only while it leads. zkl_guard_release and zkl_guard_free resign.
///
/// On connection loss it continues, as zkl_lock_acquire. After an error it does not take part. `pthread_cancel` waits
/// until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
/// with zkl_guard_release or zkl_guard_free.
///
/// ZOK; otherwise as zkl_lock_acquire. ZINVALIDSTATE: in the child of a fork.
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
        let guard = wait(campaign(&election, within), None)?;
        place.write(Box::into_raw(zkl_guard::boxed(guard, shared)));
        Ok(())
    })
}

fn campaign(election: &Election, within: Option<Duration>) -> Pending<Guard, LockError> {
    match within {
        Some(within) if within.is_zero() => election.elect_at_once(),
        within => limited(election.elect(), within),
    }
}

/// As zkl_election_campaign, but does not wait. zklock calls `done` when this participant leads. Otherwise as
/// zkl_lock_acquire_async, a NULL `done` included. zkl_attempt_cancel ends the participation.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started; otherwise as zkl_lock_acquire_async.
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
        let work = || campaign(&election, within);
        begin_acquire((NAME, &what), &shared, to, attempt, guards_of(&shared), work)
    })
}

/// Resigns in favour of a participant from zkl_election_participants, and waits up to `timeout_ms` until it leads.
/// Participants with an earlier turn give way to it, once each, and queue behind it. The guard stays the program's,
/// whatever this returns. Once it has resigned, the guard is ZKL_LOST with reason 0. Then `lost` callbacks are not
/// called, and zkl_guard_release gives ZOK.
///
/// There are never two leaders, and terms grow, whatever fails: the claims alone decide who leads. If the chosen
/// participant dies or leaves, the next one leads. Participants that acquire the lock itself, without an election, do
/// not give way.
///
/// On connection loss it continues while the session lives. `pthread_cancel` waits until it has ended. In the child of
/// a fork nothing is done.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. Do not free or release the guard meanwhile.
///
/// ZOK: the chosen participant leads. ZNOTHING: it has left the election. If zkl_guard_state is ZKL_HELD, it had left
/// before, and this one still leads; otherwise the next one leads. ZKL_NOT_HELD: the leadership was lost before.
/// ZKL_OUTCOME_UNKNOWN: the time has passed, or the session or the client was over meanwhile. The chosen participant may
/// still lead later; zkl_guard_state tells whether this one has resigned. ZBADARGUMENTS: an argument is NULL, a guard of
/// something else, or another negative timeout. Otherwise as zkl_lock_acquire; nothing was done.
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

/// As zkl_election_hand_over, but does not wait. zklock calls `done` exactly once with its result, on the client's
/// callback thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an
/// error, neither is called. The guard may be released or freed meanwhile.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `election`, `guard`, `to` or `done` is NULL, a guard of something else, or
/// another negative timeout. ZSYSTEMERROR: no thread is available. `done` reports
/// everything else.
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

/// The leader: a list of one entry, with the term as its token, or an empty one.
///
/// Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended. ZINVALIDSTATE: in the
/// child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_leader(
    election: Option<&zkl_election>,
    leader: Option<&mut MaybeUninit<*mut zkl_contenders>>,
) -> c_int {
    status(|| list("zkl_election_leader", election, leader, 1))
}

/// The participants in the order in which they will lead. The first one leads.
///
/// Threads, ownership and codes: as zkl_lock_holder. `pthread_cancel` waits until it has ended. ZINVALIDSTATE: in the
/// child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_election_participants(
    election: Option<&zkl_election>,
    participants: Option<&mut MaybeUninit<*mut zkl_contenders>>,
) -> c_int {
    status(|| list("zkl_election_participants", election, participants, usize::MAX))
}

/// Watches the leader without taking part. zklock calls `changed` with the leader, now and at each change: a list of
/// one entry or an empty one, which the program frees. A leader that comes and goes between two calls is left out. The
/// next call comes after the previous one has returned. During a hand-over it may briefly show participants that give
/// way.
///
/// Calls run on the client's callback thread until `*watch` is freed; then `finalizer` runs. On connection loss they
/// continue with the next connection or session. A code other than ZOK, with NULL for the list, is the last call, and
/// `finalizer` follows it too. Either the servers refuse, or the client is closed (ZINVALIDSTATE, ZCLOSING or
/// ZSESSIONEXPIRED). A client of an adopted handle also ends with its session: watch again after zkl_client_follow.
///
/// Until it is freed, it keeps the client's session, as a guard does. In the child of a fork nothing is called.
///
/// Any thread, callbacks included; does not block. On success `*watch` is written before `changed` can run, and is the
/// program's: end it with zkl_watch_free.
///
/// ZOK. ZBADARGUMENTS: `election`, `changed` or `watch` is NULL. ZSYSTEMERROR: no thread is available. ZINVALIDSTATE:
/// in the child of a fork.
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
