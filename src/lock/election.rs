//! Elections: the holder of a lock is the leader.

use std::future::Future;
use std::sync::Arc;

use super::Lock;
use super::caller::Caller;
use super::contender::Contender;
use super::error::LockError;
use super::guard::Guard;
use super::handover::Handover;
use super::holders::Holders;
use super::op::LockOp;
use super::strategy::Strategy;
use super::whenever_held::WheneverHeld;
use crate::runtime::Pending;

/// An election at a lock's path: one participant leads at a time. Clones are the same election.
///
/// A participant joins by [`campaign`](Election::campaign) or [`lead`](Election::lead). The first to join leads. When
/// it resigns, dies or loses its session, the next one leads, in the order in which they joined. As with a [`Guard`], a
/// leader learns of its loss *before* another can lead, by the local clock if need be. Each leader's
/// [term](Leadership::term) is larger than all earlier ones, so that a store can reject the writes of an earlier
/// leader.
///
/// A participant is described by its lock's [`label`](Lock::label), its host and its process.
/// [`leader`](Election::leader), [`participants`](Election::participants) and [`observe`](Election::observe) show them.
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
#[derive(Clone, Debug)]
pub struct Election {
    lock: Lock,
    handover: Handover,
}

impl Election {
    /// The election at that lock's path, in any store. The lock becomes a fair queue, whatever [`Strategy`] it had, so
    /// that all participants can be seen. A client that acquires a queue lock with that path takes part too.
    pub fn new(lock: Lock) -> Election {
        let lock = lock.strategy(Strategy::Queue);
        Election { handover: Handover::new(&lock), lock }
    }

    /// The path of the election.
    pub fn path(&self) -> &str {
        self.lock.path()
    }

    /// Takes part until this participant leads. It waits without a limit, or [within](Pending::within) one. It costs
    /// one request more than an [acquire](Lock::acquire) of the lock.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    ///
    /// # On connection loss
    /// As [`Lock::acquire`]. It leads only once a server has answered again.
    ///
    /// # Cancel safety
    /// Dropping it ends the participation and leaves nothing behind. A [`Pending`] that is kept and not polled still
    /// takes part: when its turn comes, nobody leads.
    pub fn campaign(&self) -> Pending<Leadership, LockError> {
        let election = self.clone();
        self.elect().map(move |elected| Ok(election.led_by(Arc::new(elected?))))
    }

    /// Takes part for as long as the work continues. Each time this participant leads, it starts the work from the
    /// beginning.
    ///
    /// **The work ends before another participant can lead**: when the leadership is lost, the future of the work is
    /// dropped, and the participant joins the end of the queue. Work that computes or blocks its thread can only end
    /// itself: see [`Lock::while_held`]. Work that [resigns](Leadership::resign) is dropped too. But another participant
    /// may lead as soon as it has called that, so call it last. A [hand-over](Leadership::hand_over) is for another task:
    /// within the work it would be dropped with the work, and the next participant would lead.
    ///
    /// It ends when the work ends by itself, and gives the result of the work; the participant then leaves the
    /// election. With [`until`](WheneverHeld::until), it also ends on a signal. After an error of the store it retries;
    /// the pause between attempts grows to ten seconds.
    ///
    /// # Errors
    /// As [`Lock::whenever_held`].
    ///
    /// # Cancel safety
    /// Dropping it drops the work, then resigns.
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

    /// The leader, if there is one.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// As [`Lock::contenders`].
    pub fn leader(&self) -> Pending<Option<Contender>, LockError> {
        self.lock.holder()
    }

    /// The participants in the order in which they will lead. The first one leads.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// As [`Lock::contenders`].
    pub fn participants(&self) -> Pending<Vec<Contender>, LockError> {
        self.lock.contenders()
    }

    /// Watches the leader without taking part: the present one first, then each new one. It is a stream and a blocking
    /// receiver. A leader's term is its [`token`](Contender::token). During a [hand-over](Leadership::hand_over) it may
    /// briefly show participants that give way: they do not lead.
    pub fn observe(&self) -> Holders {
        self.lock.watch_holder()
    }

    /// As [`campaign`](Election::campaign): the lock that a leader holds.
    pub(crate) fn elect(&self) -> Pending<Guard, LockError> {
        let (handover, caller) = (self.handover.clone(), Caller::present());
        self.lock.acquire().then(async move |first| handover.give_way(first?, &caller).await)
    }

    /// As [`elect`](Election::elect), but where anybody is ahead the time is over.
    #[cfg(feature = "capi")]
    pub(crate) fn elect_at_once(&self) -> Pending<Guard, LockError> {
        let handover = self.handover.clone();
        let acquired = self.lock.acquire_at_once();
        acquired.then(async move |guard| handover.lead_at_once(guard?).await)
    }

    pub(crate) fn led_by(&self, guard: Arc<Guard>) -> Leadership {
        Leadership { handover: self.handover.clone(), guard }
    }
}

/// The leadership of a participant, until it is lost or resigned. Clones share it; dropping the last one resigns.
/// Clones that outlive the work of [`Election::lead`] end with the work.
#[derive(Clone, Debug)]
#[must_use = "dropping it resigns"]
pub struct Leadership {
    handover: Handover,
    guard: Arc<Guard>,
}

impl Leadership {
    /// A number that is larger than that of every earlier leader: the lock's [fencing token](Guard::fencing_token). If
    /// a store remembers the largest term and rejects smaller ones, a former leader cannot write to it.
    pub fn term(&self) -> i64 {
        self.guard.fencing_token()
    }

    /// The guard of the leader's lock. It tells whether this participant [still leads](Guard::state) and [when it
    /// stops](Guard::lost), and writes to ZooKeeper [only while it leads](Guard::multi).
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Resigns. A participant of [`Election::lead`] then joins the end of the queue; one of [`Election::campaign`] has
    /// left the election.
    ///
    /// # Errors
    /// As [`Guard::release`]. [`Lost`](LockError::Lost) also if it was resigned before.
    ///
    /// # Cancel safety
    /// Dropping it does not stop the resignation.
    pub fn resign(&self) -> Pending<(), LockError> {
        self.guard.release_now()
    }

    /// Resigns in favour of one of [`Election::participants`]. Participants with an earlier turn give way to it and
    /// queue behind it.
    ///
    /// Gives `true` once the chosen participant leads, and `false` if it has left the election. If it had left before
    /// this resigned, this leadership continues; otherwise the next participant leads. [`Guard::is_lost`] tells which.
    ///
    /// It costs six requests, and four for each participant that gives way. Participants of other programs that acquire
    /// the lock itself do not give way: they lead when their turn comes.
    ///
    /// # What holds, whatever fails
    /// There are never two leaders, and terms grow: the lock alone decides who leads. The name of the chosen
    /// participant only makes others give way. It is a claim of this session on a lock below the election's path
    /// (`zl-handover`), so it disappears with this session at the latest.
    ///
    /// | what fails | who leads |
    /// |---|---|
    /// | the chosen one dies, loses its session or leaves | the next participant, as soon as the chosen one is gone |
    /// | the chosen one is frozen, or does not poll its campaign | nobody, until its session ends or it continues |
    /// | the one that hands over dies or is cut off before it has resigned | it leads until its session is lost, then the next |
    /// | the same after it has resigned | the chosen one if its turn comes within the session timeout, otherwise the next |
    /// | a participant that gives way dies | no difference |
    /// | a reply is lost | no difference: the outcome is looked up, or the request repeated |
    ///
    /// # Errors
    /// - [`NotHeld`](LockError::NotHeld): the leadership was lost before it was resigned.
    /// - As [`Lock::acquire`]: the chosen participant could not be named, and nothing was done.
    /// - As [`Guard::release`]: the resignation was not confirmed.
    /// - [`OutcomeUnknown`](LockError::OutcomeUnknown): before the chosen participant led, the session was lost or the
    ///   client closed after it had resigned, or the limit passed; [`Guard::is_lost`] tells whether it had resigned by
    ///   then. The chosen participant may still lead later.
    ///
    /// # Cancel safety
    /// If it is dropped before it has resigned, this leadership continues. After that, the next participant leads.
    pub fn hand_over(&self, to: &Contender) -> Pending<bool, LockError> {
        let (handover, guard, to) = (self.handover.clone(), Arc::clone(&self.guard), to.token);
        let path = handover.path().to_owned();
        let handing = async move { handover.run(&guard, to).await };
        LockOp::HandOver.run(path, handing)
    }
}
