//! What contends, and what it has then: a lock and its guard, or what is built on them.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use zklock::{Contender, Election, Guard, Leadership, Lock, LockError, MultiLock, Pending};

#[derive(Clone)]
pub enum Contending {
    Lock(Lock),
    Together(MultiLock),
    Election(Election),
}

pub enum Acquiring {
    Guard(Pending<Guard, LockError>),
    Leadership(Pending<Leadership, LockError>),
}

/// What holds.
#[derive(Debug)]
pub enum Held {
    Guard(Guard),
    Leadership(Leadership),
}

impl Contending {
    pub fn acquire(&self) -> Acquiring {
        match self {
            Contending::Lock(lock) => Acquiring::Guard(lock.acquire()),
            Contending::Together(locks) => Acquiring::Guard(locks.acquire()),
            Contending::Election(election) => Acquiring::Leadership(election.campaign()),
        }
    }

    /// Of an election nobody only tries to lead it.
    pub fn try_acquire(&self) -> Pending<Option<Guard>, LockError> {
        match self {
            Contending::Lock(lock) => lock.try_acquire(),
            Contending::Together(locks) => locks.try_acquire(),
            Contending::Election(election) => unreachable!("{election:?} is only campaigned for"),
        }
    }
}

impl Contending {
    /// Those who hold or wait.
    pub fn contenders(&self) -> Pending<Vec<Contender>, LockError> {
        self.lock().contenders()
    }

    /// Has that hold broken at once; gives whether it was there.
    pub fn break_hold(&self, holder: &Contender) -> Pending<bool, LockError> {
        self.lock().break_hold(holder, "it is tested", Duration::ZERO)
    }

    fn lock(&self) -> &Lock {
        let Contending::Lock(lock) = self else { unreachable!("only of a lock it is asked") };
        lock
    }
}

impl Acquiring {
    pub fn within(self, limit: Duration) -> Acquiring {
        match self {
            Acquiring::Guard(pending) => Acquiring::Guard(pending.within(limit)),
            Acquiring::Leadership(pending) => Acquiring::Leadership(pending.within(limit)),
        }
    }

    pub fn wait(self) -> Result<Held, LockError> {
        match self {
            Acquiring::Guard(pending) => pending.wait().map(Held::Guard),
            Acquiring::Leadership(pending) => pending.wait().map(Held::Leadership),
        }
    }
}

impl Future for Acquiring {
    type Output = Result<Held, LockError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.get_mut() {
            Acquiring::Guard(pending) => ready!(Pin::new(pending).poll(cx)).map(Held::Guard),
            Acquiring::Leadership(pending) => {
                ready!(Pin::new(pending).poll(cx)).map(Held::Leadership)
            }
        })
    }
}

impl Held {
    pub fn release(self) -> Pending<(), LockError> {
        match self {
            Held::Guard(guard) => guard.release(),
            Held::Leadership(leadership) => leadership.resign(),
        }
    }
}

impl Deref for Held {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        match self {
            Held::Guard(guard) => guard,
            Held::Leadership(leadership) => leadership.guard(),
        }
    }
}
