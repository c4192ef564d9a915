//! Who of several participants leads: a lock whose holder is the leader.

use std::future::Future;
use std::sync::Arc;

use super::Lock;
use super::caller::Caller;
use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::handover::Handover;
use super::holders::Holders;
use super::strategy::Strategy;
use super::whenever_held::WheneverHeld;
use crate::runtime::Pending;

/// An election at a lock's path: of those who take part, one leads at a time. Clones are the same election.
///
/// Whoever [campaigns](Election::campaign) or [leads](Election::lead) takes part. The first to come leads; when it
/// resigns, dies or loses its session, the next one does, in the order in which they came. A leader is notified that it
/// is none any more *before* another can lead, by the local clock if need be: what a [`Guard`] promises holds of a
/// leader. Each leader has a [term](Leadership::term), which is larger than that of every leader before it, so that a
/// store can refuse the writes of an earlier one.
///
/// What a participant says of itself is its lock's [`label`](Lock::label), which [`leader`](Election::leader),
/// [`participants`](Election::participants) and [`observe`](Election::observe) show beside its host and process.
///
/// ```no_run
/// # use std::future::Future;
/// # async fn example(zk: zklock::Client, ctrl_c: impl Future<Output = ()>) -> Result<(), zklock::LockError> {
/// use zklock::Election;
///
/// let election = Election::new(zk.lock("/elections/billing").label("node 7, rack 2"));
/// election.lead(|leadership| async move { serve(leadership.term()).await }).until(ctrl_c).await?;
/// # Ok(()) }
/// # async fn serve(term: i64) {}
/// ```
#[derive(Clone)]
pub struct Election {
    lock: Lock,
    handover: Handover,
}

impl Election {
    /// The election at that lock's path, of whatever store. The lock is a fair queue, whatever
    /// [`Strategy`] it had: everyone who takes part can be seen, and whoever acquires a lock with that path as a queue
    /// takes part, too.
    pub fn new(lock: Lock) -> Election {
        let lock = lock.strategy(Strategy::Queue);
        Election { handover: Handover::new(&lock), lock }
    }

    /// The path of the election.
    pub fn path(&self) -> &str {
        self.lock.path()
    }

    /// Takes part until this participant leads, however long that takes, or [within](Pending::within) a limit. It
    /// costs what an [acquire](Lock::acquire) of the lock does, and one request more.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    ///
    /// # On connection loss
    /// It goes on, as an acquire does, and leads no earlier than when a server has answered again.
    ///
    /// # Cancellation
    /// Dropping it ends the participation; nothing is left behind. A [`Pending`] that is kept and not polled still takes
    /// part: when its turn comes, there is no leader. An acquire of a lock behaves the same.
    pub fn campaign(&self) -> Pending<Leadership, LockError> {
        let election = self.clone();
        self.elect().map(move |elected| Ok(election.led_by(Arc::new(elected?))))
    }

    /// Takes part for as long as the work goes on: does it whenever this participant leads, from the beginning.
    ///
    /// **The work ends before another can lead**: when the leadership is lost, the work's future is dropped where it
    /// waits, and the participant goes to the end of the queue. (Where it computes, or blocks its thread, nothing can end
    /// it but itself: see [`Lock::while_held`].) Work that [resigns](Leadership::resign) or [hands
    /// over](Leadership::hand_over) is dropped, too, but another may lead as soon as it has called that: it does so last.
    ///
    /// It ends when the work ends by itself, and gives what that has given: with that the participant leaves the
    /// election. With [`until`](WheneverHeld::until) it also ends when it is to stop. An error of the store is tried
    /// again after a pause, which grows to ten seconds.
    ///
    /// # Errors
    /// As [`Lock::whenever_held`].
    ///
    /// # Cancellation
    /// Dropping it drops the work, and resigns after that.
    pub fn lead<W, F>(
        &self,
        mut work: W,
    ) -> WheneverHeld<impl FnMut(Arc<Guard>) -> F + use<W, F>, F>
    where
        W: FnMut(Leadership) -> F,
        F: Future,
    {
        let (election, leads) = (self.clone(), self.clone());
        let elect = move || election.elect();
        WheneverHeld::new(self.path(), elect, move |guard| work(leads.led_by(guard)))
    }

    /// Who leads; `None` is nobody.
    ///
    /// # Errors
    /// As [`Lock::contenders`].
    pub fn leader(&self) -> Pending<Option<Contender>, LockError> {
        self.lock.holder()
    }

    /// Who takes part, in the order in which they will lead: the first of them does.
    ///
    /// # Errors
    /// As [`Lock::contenders`].
    pub fn participants(&self) -> Pending<Vec<Contender>, LockError> {
        self.lock.contenders()
    }

    /// Who leads, as that changes, from the present leader on: a stream, and a blocking receiver. It takes no part. A
    /// leader's term is its [`token`](Contender::token). Of a [hand-over](Leadership::hand_over) it may show those for a
    /// moment who are passed by: they do not lead.
    pub fn observe(&self) -> Holders {
        self.lock.watch_holder()
    }

    /// As [`campaign`](Election::campaign): the lock that a leader holds.
    pub(crate) fn elect(&self) -> Pending<Guard, LockError> {
        let (handover, caller) = (self.handover.clone(), Caller::present());
        self.lock.acquire().then(async move |first| handover.give_way(first?, &caller).await)
    }

    /// The leadership of who holds the lock so.
    pub(crate) fn led_by(&self, guard: Arc<Guard>) -> Leadership {
        Leadership { handover: self.handover.clone(), guard }
    }
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Election").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// The leadership of a participant, until it is lost or resigned. Clones share it; dropping the last one resigns. Clones
/// that outlive the work of [`Election::lead`] end with it.
#[derive(Clone, Debug)]
#[must_use = "dropping it resigns"]
pub struct Leadership {
    handover: Handover,
    guard: Arc<Guard>,
}

impl Leadership {
    /// A number that is larger than that of every leader before: the lock's [fencing token](Guard::fencing_token). A
    /// store that remembers the largest term it has seen, and refuses smaller ones, can't be written to by a leader
    /// that was followed by another without noticing.
    pub fn term(&self) -> i64 {
        self.guard.fencing_token()
    }

    /// The lock that the leader holds: says whether it [still leads](Guard::state), [when it does no
    /// more](Guard::lost), and writes to ZooKeeper [only while it does](Guard::multi).
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Resigns. Who leads by [`Election::lead`] goes to the end of the queue by that; who has campaigned has left the
    /// election.
    ///
    /// # Errors
    /// As [`Guard::release`]: [`Lost`](LockError::Lost) also where it was resigned before.
    ///
    /// # Cancellation
    /// It is resigned all the same.
    pub fn resign(&self) -> Pending<(), LockError> {
        self.guard.release_now()
    }

    /// Resigns in favour of a participant of [`Election::participants`]: the others whose turn it would be before give
    /// way to it, and take part behind it. Gives `true` once it leads. `false`: it has left the election. Where it had
    /// left before, this leadership goes on; otherwise whoever is next leads ([`Guard::is_lost`] tells which).
    ///
    /// # What holds, whatever fails
    /// There are never two leaders, and terms grow: who leads is decided by the lock alone, and the name of the chosen
    /// one only makes others give way. That name is a claim of this session on a lock below the election's path
    /// (`zl-handover`), so it is there no longer than the session of the one who hands over:
    ///
    /// | what fails | who leads |
    /// |---|---|
    /// | the chosen one dies, loses its session or leaves | the next whose turn it is, as soon as it is gone |
    /// | the chosen one is frozen, or does not poll its campaign | nobody, until its session ends or it goes on: as of a lock whose next waiter is |
    /// | who hands over dies or is cut off before it has resigned | it leads until its session is lost, then the next |
    /// | the same after it has resigned | the chosen one if its turn comes within the session timeout, otherwise the next |
    /// | one of those who give way dies | no difference |
    /// | a reply is lost | no difference: it is looked up, or asked again |
    ///
    /// It costs six requests, and four of each participant that is passed by. Participants of other programs that
    /// acquire the lock itself do not give way: they lead when their turn comes.
    ///
    /// # Errors
    /// [`NotHeld`](LockError::NotHeld) when the leadership was lost before it was resigned, and as
    /// [`Lock::acquire`] where the chosen one could not be named: nothing was done. As [`Guard::release`] where the
    /// resignation was not confirmed. [`OutcomeUnknown`](LockError::OutcomeUnknown) when it was resigned, and the
    /// session was lost, the client closed, or the time over before the chosen one led: it may come to lead yet.
    ///
    /// # Cancellation
    /// Before it was resigned: this leadership goes on. After that: whoever is next leads.
    pub fn hand_over(&self, to: &Contender) -> Pending<bool, LockError> {
        let (handover, guard, to) = (self.handover.clone(), Arc::clone(&self.guard), to.token);
        let path = handover.path().to_owned();
        let handing = async move { handover.run(&guard, to).await };
        Pending::run_as("hand over", path, LockError::of_pending, handing)
    }
}
