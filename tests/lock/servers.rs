//! Locks on servers of databases: what is lost with requests, replies, and the server itself.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use test_support::{Link, Lost, TIMEOUT, acquire_in_background, eventually};
use zklock::{GuardState, LockError};

use crate::endurance::{self, Fault, pause};
use crate::place::{Elsewhere, patient};

const PATH: &str = "/locks/server";
const SHORT: Duration = Duration::from_secs(3);
/// Longer than any of these tests.
const LONG: Duration = Duration::from_secs(3_600);

/// A server of a test's own.
pub trait Server: Elsewhere {
    fn addr(&self) -> SocketAddr;

    /// Its address by way of another.
    fn address_at(&self, address: SocketAddr) -> String;

    fn pid(&self) -> Pid;

    fn kill(&self);

    fn start_again(&self);
}

/// Another program on a server's tables, as long as it is connected. It gives the first number of each answer.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub type Program = Box<dyn FnMut(&str) -> Option<i64>>;

/// One whose tables other programs can work on.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub trait Tables: Server {
    fn program(&self) -> Program;

    /// How many clients wait for a row that another one has locked.
    fn waiting_for_rows(&self) -> i64;
}

/// A test for each kind of server with tables.
macro_rules! with_tables {
    ($contract:ident, $lease:ident) => {
        #[cfg(feature = "mysql")]
        #[test]
        fn mysql() {
            $contract(&crate::mysql::Server::with($lease));
        }

        #[cfg(feature = "postgres")]
        #[test]
        fn postgres() {
            $contract(&crate::postgres::Server::with($lease));
        }
    };
}

/// Runs each of these for each kind of server, with sessions of some length.
macro_rules! each_server {
    ($(fn $name:ident($server:ident: $lease:ident) $body:block)+) => {$(
        mod $name {
            use super::*;

            fn contract($server: &dyn Server) $body

            with_tables!(contract, $lease);

            #[cfg(feature = "redis")]
            #[test]
            fn redis() {
                contract(&crate::redis::server_with($lease));
            }
        }
    )+};
}

/// Runs each of these for each kind of server with tables.
#[cfg(any(feature = "mysql", feature = "postgres"))]
macro_rules! each_server_with_tables {
    ($(fn $name:ident($server:ident: $lease:ident) $body:block)+) => {$(
        mod $name {
            use super::*;

            fn contract($server: &dyn Tables) $body

            with_tables!(contract, $lease);
        }
    )+};
}

each_server! {
    fn whatever_frame_is_lost_one_holds_at_a_time_and_nothing_is_left(server: LONG) {
        let link = Link::to(server.addr());
        let options = patient(server.session_timeout());
        let store = options.connect(&server.address_at(link.address)).wait().unwrap();
        let (other, connections) = (server.connect(), link.connections());
        let mut last = 0;
        for lost in [Lost::Request, Lost::Reply] {
            for frame in 0..12 {
                link.lose(lost, frame);
                let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
                assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none(), "{lost:?} {frame}");
                // Also where the row is gone when the release is repeated: it was this one's.
                guard.release().wait().unwrap();
                let next = other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
                assert!(next.fencing_token() > last);
                last = next.fencing_token();
                next.release().wait().unwrap();
            }
        }
        // Not each acquire and release has so many frames. With each frame its connection was lost.
        let losses = link.connections() - connections;
        assert!(losses > 3, "{losses} frames were lost");
        drop(store);
        let lock = other.lock(PATH);
        eventually("nothing is left", || lock.contenders().wait().unwrap().is_empty());
    }

    fn a_server_that_is_gone_costs_the_lock_in_time_and_is_waited_for(server: SHORT) {
        let store = server.connect();
        let guard = store.lock(PATH).acquire().wait().unwrap();
        let (mut states, token) = (guard.states(), guard.fencing_token());
        assert_eq!(states.wait(), Some(GuardState::Held));
        // It sits out an outage of more than a lease.
        let mut holders = store.lock(PATH).watch_holder();
        let next = thread::spawn(move || loop {
            let holder = holders.wait().expect("it goes on").unwrap();
            if let Some(holder) = holder.filter(|holder| holder.token != token) {
                return holder.token;
            }
        });
        server.kill();
        assert_eq!(states.wait_timeout(TIMEOUT), Ok(Some(GuardState::Suspended)));
        assert_eq!(states.wait_timeout(TIMEOUT), Ok(Some(GuardState::Lost)));
        eventually("an acquire that is too late says why", || {
            let late = store.lock(PATH).acquire().within(SHORT / 6).wait().unwrap_err();
            late.is_timeout() && late.to_string().contains("refused")
        });
        let waiting = acquire_in_background(&store.lock(PATH));
        assert!(guard.release().wait().unwrap_err().is_lost());
        thread::sleep(SHORT);
        server.start_again();
        let guard = waiting.join().unwrap().unwrap();
        assert_eq!(next.join().unwrap(), guard.fencing_token());
        guard.release().wait().unwrap();
    }
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
each_server_with_tables! {
    // It has on its disk what it has confirmed.
    fn a_server_that_is_killed_and_started_again_costs_nothing(server: LONG) {
        let (store, other) = (server.connect(), server.connect());
        let guard = store.lock(PATH).acquire().wait().unwrap();
        let waiting = acquire_in_background(&other.lock(PATH));
        let two = || store.lock(PATH).contenders().wait().is_ok_and(|two| two.len() == 2);
        eventually("it waits", two);
        server.kill();
        server.start_again();
        eventually("both are there", two);
        assert_eq!((guard.state() == GuardState::Lost, waiting.is_finished()), (false, false));
        let token = guard.fencing_token();
        guard.release().wait().unwrap();
        let next = waiting.join().unwrap().unwrap();
        assert!(next.fencing_token() > token);
        next.release().wait().unwrap();
    }

    fn a_client_that_falls_silent_within_a_step_keeps_nobody_out_for_ever(server: SHORT) {
        let silent = (0..12).map(|reply| {
            let (link, path) = (Link::to(server.addr()), format!("{PATH}/{reply}"));
            let store = patient(SHORT).connect(&server.address_at(link.address)).wait().unwrap();
            // It can't come back.
            link.lead_to("127.0.0.1:1".parse().unwrap());
            link.lose(Lost::ReplyAndSilence, reply);
            let acquire = store.lock(&path).acquire();
            (link, path, store, acquire)
        });
        let silent: Vec<_> = silent.collect();
        for (link, ..) in &silent {
            // A busy machine may have it give its connection up before.
            eventually("it is cut off", || link.has_lost() || link.connections() > 1);
        }
        assert!(silent.iter().any(|(link, ..)| link.has_lost()));
        let other = server.connect();
        let next = silent.iter().map(|(_, path, ..)| other.lock(path).acquire().within(TIMEOUT));
        for next in next.collect::<Vec<_>>() {
            next.wait().unwrap().release().wait().unwrap();
        }
    }

    fn no_claim_is_made_on_a_session_that_somebody_is_ending(server: LONG) {
        let store = server.connect();
        let before = store.lock("/locks/before").acquire().wait().unwrap();
        let mut program = server.program();
        program("BEGIN");
        program("DELETE FROM zklock_session");
        let acquiring = acquire_in_background(&store.lock(PATH));
        let claims = format!("SELECT count(*) FROM zklock_claim WHERE path = '{PATH}'");
        eventually("it waits, or is made", || {
            server.waiting_for_rows() > 0 || program(&claims) != Some(0)
        });
        assert_eq!(program(&claims), Some(0));
        program("COMMIT");
        let guard = acquiring.join().unwrap().unwrap();
        assert!(before.is_lost());
        guard.release().wait().unwrap();
    }

    fn a_session_that_is_in_use_does_not_keep_others_from_being_ended(server: LONG) {
        let store = server.connect();
        let (path, ended) = (format!("{PATH}/used"), format!("{PATH}/ended"));
        let (used, held) = (store.lock(&path), store.lock(&ended));
        let guards = [&used, &held].map(|lock| {
            let store = server.connect();
            let guard = store.lock(lock.path()).acquire().wait().unwrap();
            (store, guard)
        });
        let mut program = server.program();
        program("UPDATE zklock_session SET expires = 1 WHERE id IN (SELECT session FROM zklock_claim)");
        program("BEGIN");
        program(&format!(
            "SELECT expires FROM zklock_session WHERE id =
             (SELECT session FROM zklock_claim WHERE path = '{path}') FOR UPDATE"
        ));
        held.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        drop((program, guards));
    }
}

/// A link of each client.
pub fn links(server: &dyn Server) -> Vec<Link> {
    (0..endurance::CLIENTS).map(|_| Link::to(server.addr())).collect()
}

/// Tries a store whose clients are connected to its server by these links, with all that can fail of any server and more.
pub fn try_server<'a>(
    name: &str,
    server: &'a dyn Server,
    links: &'a [Link],
    more: impl IntoIterator<Item = Fault<'a>>,
) {
    let faults: Vec<Fault<'_>> = of_server(server, links).into_iter().chain(more).collect();
    let options = patient(endurance::LEASE);
    let connect =
        |client: usize| options.connect(&server.address_at(links[client].address)).wait().unwrap();
    endurance::try_hard(name, connect, &faults, |news| println!("{news}"));
}

/// The codes by which a server with tables refuses to insert a claim, by what an acquire makes of them.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub struct Refusals<'a> {
    pub waited_for: &'a [&'a str],
    pub not_permitted: &'a [&'a str],
    pub unusable: &'a [&'a str],
    pub failed: &'a [&'a str],
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl Refusals<'_> {
    /// `refuse` makes a server refuse claims by this code.
    pub fn are_taken_for_what_they_are(&self, server: &dyn Server, refuse: impl Fn(&str)) {
        let store = server.connect();
        let acquire = |code: &str, limit: Duration| {
            refuse(code);
            let error = store.lock(PATH).acquire().within(limit).wait().unwrap_err();
            assert!(error.to_string().contains("refused here"), "{code}: {error}");
            assert!(!error.is_outcome_unknown(), "{code}: {error:?}");
            error
        };
        for code in self.waited_for {
            let error = acquire(code, Duration::from_millis(700));
            assert!(error.is_timeout(), "{code}: {error:?}");
        }
        for code in self.not_permitted {
            let error = acquire(code, TIMEOUT);
            assert!(matches!(error, LockError::NotPermitted { .. }), "{code}: {error:?}");
        }
        for code in self.unusable {
            let error = acquire(code, TIMEOUT);
            assert!(matches!(error, LockError::Unusable { .. }), "{code}: {error:?}");
        }
        for code in self.failed {
            let error = acquire(code, TIMEOUT);
            let is_failed = matches!(error, LockError::Store { .. }) && !error.is_timeout();
            assert!(is_failed, "{code}: {error:?}");
        }
    }
}

/// No row can be inserted for a while.
pub fn full_disk<'a>(fill: impl Fn() + 'a, make_room: impl Fn() + 'a) -> Fault<'a> {
    Fault::new("disk full", move |dice| {
        fill();
        thread::sleep(pause(dice, 200));
        make_room();
    })
}

/// The faults of any server.
fn of_server<'a>(server: &'a dyn Server, links: &'a [Link]) -> Vec<Fault<'a>> {
    let any = |dice: &mut Rng| &links[dice.usize(..links.len())];
    vec![
        Fault::new("request lost", move |dice| any(dice).lose(Lost::Request, 0)),
        Fault::new("reply lost", move |dice| any(dice).lose(Lost::Reply, 0)),
        Fault::new("client cut off", move |dice| {
            let link = any(dice);
            link.lead_to("127.0.0.1:1".parse().unwrap());
            link.lose(Lost::Request, 0);
            thread::sleep(pause(dice, 200));
            link.lead_to(server.addr());
        }),
        Fault::new("server frozen", move |dice| {
            let pid = server.pid();
            kill_process(pid, Signal::STOP).unwrap();
            thread::sleep(pause(dice, 200));
            kill_process(pid, Signal::CONT).unwrap();
        }),
        Fault::new("server killed", move |dice| {
            server.kill();
            thread::sleep(pause(dice, 100));
            server.start_again();
        }),
    ]
}

/// The server's clock is set back or forward: what ends by it ends later or earlier by so many nanoseconds.
pub fn clock_steps<'a>(step: impl Fn(i64) + Clone + 'a) -> [Fault<'a>; 2] {
    let nanos = |dice: &mut Rng| i64::try_from(pause(dice, 100).as_nanos()).unwrap();
    let back = step.clone();
    [
        Fault::new("clock set back", move |dice| back(nanos(dice))),
        Fault::new("clock set forward", move |dice| step(-nanos(dice))).after_which_two_may_hold(),
    ]
}
