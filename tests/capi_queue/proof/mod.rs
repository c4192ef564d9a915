//! Elements are moved through a queue while all that can fail does: producers and consumers are
//! killed and frozen, servers of an ensemble killed and started again, and the queue's znode is
//! deleted whenever the queue is empty. Nothing may be lost, doubled or out of order.
//!
//! `make queue` plays it long; `docs/queue.md` says what is counted, and how.

mod faults;
mod ledger;
mod mover;

use std::sync::Arc;
use std::time::{Duration, Instant};

use test_support::{TIMEOUT, eventually};
use zklock::{Client, Error};
use zklock_testing::Server;

use self::ledger::Ledger;
use self::mover::{Mover, Record};
use crate::program::Tool;

const PRODUCERS: usize = 4;
const CONSUMERS: usize = 4;
const PATH: &str = "/queue";
const RECEIPTS: &str = "/zklock/receipts";

/// What a killed process had sent has arrived after that, or never will.
const SETTLED: Duration = Duration::from_secs(2);

/// A process that was killed, whose session is to be looked at before it goes.
struct Killed {
    at: Instant,
    now: u64,
    /// `None`: a consumer.
    producer: Option<usize>,
    record: Record,
}

struct Proof {
    hosts: String,
    /// How many elements each producer offers.
    each: usize,
    client: Client,
    /// With the first element that is its own; `None` when all are offered.
    producers: Vec<Option<(Mover, usize)>>,
    consumers: Vec<Mover>,
    killed: Vec<Killed>,
    ledger: Ledger,
    kills: usize,
    freezes: usize,
    /// Processes whose session was over, and that others have followed.
    replaced: usize,
}

impl Proof {
    fn producer(&self, number: usize, first: usize) -> Option<(Mover, usize)> {
        let what = [number, first, self.each].map(|number| number.to_string());
        let what: Vec<String> = std::iter::once("offer".to_owned()).chain(what).collect();
        Some((Mover::start(&self.hosts, PATH, &what), first))
    }

    fn consumer(&self) -> Mover {
        Mover::start(&self.hosts, PATH, &["take".to_owned()])
    }

    /// Follows up what has ended by itself: all is offered, or the session is over.
    fn tend(&mut self) {
        for number in 0..PRODUCERS {
            let Some((producer, first)) = &mut self.producers[number] else { continue };
            let Some(status) = producer.ended() else { continue };
            let first = *first;
            let Some((producer, _)) = self.producers[number].take() else { continue };
            let mut record = producer.kill();
            if !status.success() {
                assert_eq!(status.code(), Some(3), "a producer: {status}");
                self.replaced += 1;
                // Nothing was done of an offer that has no end.
                let next = record.in_flight().or(record.begun.map(|n| n + 1));
                self.producers[number] = self.producer(number, next.unwrap_or(first));
            }
            record.begun = None;
            self.ledger.enter_offers(number, &record, Some(record.executed()));
        }
        for at in 0..self.consumers.len() {
            let Some(status) = self.consumers[at].ended() else { continue };
            assert_eq!(status.code(), Some(3), "a consumer: {status}");
            self.replaced += 1;
            let new = self.consumer();
            let record = std::mem::replace(&mut self.consumers[at], new).kill();
            self.ledger.enter_takes(&record, Some(record.executed()), now());
        }
    }

    /// Kills a process; another takes its place, and begins with the next element.
    fn kill_one(&mut self) {
        let which = fastrand::usize(..PRODUCERS + CONSUMERS);
        let (producer, record) = if let Some(at) = which.checked_sub(PRODUCERS) {
            let new = self.consumer();
            (None, std::mem::replace(&mut self.consumers[at], new).kill())
        } else {
            let Some((producer, first)) = self.producers[which].take() else { return };
            let record = producer.kill();
            let next = record.begun.map_or(first, |n| n + 1);
            self.producers[which] = self.producer(which, next);
            (Some(which), record)
        };
        self.kills += 1;
        self.killed.push(Killed { at: Instant::now(), now: now(), producer, record });
    }

    /// Stops some of the consumers for a while. What they knew of the queue is outdated after it.
    fn freeze_some(&mut self) {
        let some: Vec<&Mover> = self.consumers.iter().filter(|_| fastrand::bool()).collect();
        some.iter().for_each(|consumer| consumer.freeze());
        std::thread::sleep(Duration::from_millis(fastrand::u64(50..1_500)));
        some.iter().for_each(|consumer| consumer.thaw());
        self.freezes += some.len();
    }

    /// Enters those killed processes of which all is known that ever will be.
    fn audit(&mut self) {
        let is_settled = |killed: &Killed| killed.at.elapsed() > SETTLED;
        if !self.killed.iter().any(is_settled) {
            return;
        }
        let Ok(receipts) = self.receipts() else { return };
        let (settled, fresh) = self.killed.drain(..).partition(is_settled);
        self.killed = fresh;
        let settled: Vec<Killed> = settled;
        for Killed { at, now, producer, record } in settled {
            // A session lasts for 30 s: `mover.c`.
            let is_in_time = at.elapsed() < Duration::from_secs(25);
            let of_session = |session| {
                let its = receipts.iter().filter(|(owner, _)| *owner == session);
                its.map(|(_, executed)| executed).sum()
            };
            let executed = record.session.map_or(0, of_session);
            let executed = is_in_time.then_some(executed);
            match producer {
                Some(producer) => self.ledger.enter_offers(producer, &record, executed),
                None => self.ledger.enter_takes(&record, executed, now),
            }
        }
    }

    /// For each receipt, its session, and how many transactions were executed with it.
    fn receipts(&self) -> Result<Vec<(i64, usize)>, Error> {
        self.client.sync(RECEIPTS).wait()?;
        let mut receipts = Vec::new();
        for name in self.client.children(RECEIPTS).wait()?.names {
            let receipt = match self.client.get(&format!("{RECEIPTS}/{name}")).wait() {
                Err(error) if error.is_no_node() => continue,
                receipt => receipt?,
            };
            // Its data count the transactions in which there was nothing else.
            let alone = String::from_utf8(receipt.data).unwrap().parse().unwrap_or(0);
            let all = usize::try_from(receipt.stat.version).unwrap() + 1;
            receipts.push((receipt.stat.ephemeral_owner, all.saturating_sub(alone)));
        }
        Ok(receipts)
    }

    fn taken(&self) -> usize {
        self.ledger.taken() + self.consumers.iter().map(Mover::taken).sum::<usize>()
    }
}

/// As `mover.c` has it.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn whatever_fails_nothing_is_lost_or_doubled_and_each_producers_order_is_kept() {
    let long =
        std::env::var("ZKLOCK_QUEUE_ELEMENTS").ok().map(|elements| elements.parse().unwrap());
    let elements: usize = long.unwrap_or(1_000);
    let ensemble = Server::builder()
        // What 3.8.0 forgets when elections are interrupted is not the queue's: see docs/soak.md.
        .jvm_arg("-Dzookeeper.forceSnapshotSync=true")
        .jvm_arg("-Xmx384m")
        .jvm_arg("-XX:TieredStopAtLevel=1")
        .jvm_arg("-Dzookeeper.forceSync=no")
        .start_timeout(3 * TIMEOUT)
        .start_ensemble(3)
        .unwrap();
    let ensemble = Arc::new(ensemble);
    let hosts = ensemble.hosts();
    let client = Client::options().session_timeout(TIMEOUT).connect(&hosts).wait().unwrap();
    let mut proof = Proof {
        hosts: hosts.clone(),
        each: elements / PRODUCERS,
        client: client.clone(),
        producers: Vec::new(),
        consumers: Vec::new(),
        killed: Vec::new(),
        ledger: Ledger::default(),
        kills: 0,
        freezes: 0,
        replaced: 0,
    };
    let began = Instant::now();
    proof.consumers = (0..CONSUMERS).map(|_| proof.consumer()).collect();
    proof.producers = (0..PRODUCERS).map(|number| proof.producer(number, 0)).collect();
    let deletions = faults::delete_when_empty(client.clone(), PATH);
    let restarts = faults::restart_servers(Arc::clone(&ensemble));
    let limit = 10 * TIMEOUT + Duration::from_millis(200) * u32::try_from(elements).unwrap();
    while proof.producers.iter().any(Option::is_some) {
        assert!(began.elapsed() < limit, "{} taken in {limit:?}", proof.taken());
        std::thread::sleep(Duration::from_millis(fastrand::u64(50..500)));
        match fastrand::u32(..2) {
            0 => proof.freeze_some(),
            _ => proof.kill_one(),
        }
        proof.tend();
        proof.audit();
    }
    let restarts = restarts.stop();
    let deletions = deletions.stop();
    ensemble.wait_for_quorum(TIMEOUT).unwrap();
    eventually("the queue is empty", || {
        proof.tend();
        client.children(PATH).wait().is_ok_and(|listed| listed.names.is_empty())
    });
    eventually("all are audited", || {
        proof.audit();
        proof.killed.is_empty()
    });
    let mut last = Tool::with_session_timeout(&hosts, PATH, 30_000);
    for _ in 0..CONSUMERS {
        assert_eq!(last.offer(b"stop"), 0);
    }
    for mut consumer in std::mem::take(&mut proof.consumers) {
        eventually("a consumer stops", || consumer.ended().is_some());
        let record = consumer.kill();
        assert_eq!(record.stops, 1);
        proof.ledger.enter_takes(&record, Some(record.executed()), now());
    }
    let Proof { mut ledger, kills, freezes, replaced, .. } = proof;
    ledger.close();
    let seconds = began.elapsed().as_secs();
    println!(
        "{} elements in {seconds} s: {kills} processes killed, {freezes} frozen, {restarts} servers \
         restarted, the queue deleted {deletions} times; {} offers were executed although their \
         process was killed, {} elements were taken by processes that were killed before they said \
         so; outcomes unknown: {} offers, {} takes; {replaced} sessions over",
        ledger.offered(),
        ledger.survived_a_producer,
        ledger.missing,
        ledger.offers_unknown,
        ledger.takes_unknown,
    );
    assert!(ledger.violations.is_empty(), "{:#?}", ledger.violations);
    assert!(kills > 0 && deletions > 0, "{kills} kills, {deletions} deletions: nothing is proven");
}
