//! Crafted runs: one in which all is well, and for each rule one that breaks it.

use std::collections::BTreeSet;

use super::*;
use crate::clock::WallClock;
use crate::history::{Hand, LockHistory, Part, Point, Tenure};
use crate::journal::{Event, State, Written};
use crate::locks::{self, Stamp};
use crate::txnlog::{Change, Txn};

const QUEUE: usize = 0;
const A: &str = "/soak/queue-1/zl-0-lock-0000000001";
const OPERATOR: i64 = 99;
const B: &str = "/soak/queue-1/zl-0-lock-0000000002";

/// A run on which all times are milliseconds, and zxids are the times of their transactions.
struct Story {
    txns: Vec<Txn>,
    journals: Vec<(u32, Vec<Entry>)>,
    faults: Vec<Fault>,
    crashed: Vec<u32>,
    left: Vec<String>,
}

fn ms(time: i64) -> Moment {
    Moment(time * 1_000_000)
}

fn entry(at: i64, event: Event) -> Entry {
    Entry { at: ms(at), thread: 0, event }
}

fn txn(zxid: i64, session: i64, change: Change) -> Txn {
    Txn { zxid, session, time: zxid, kind: 0, changes: vec![change], checksum: 0, digest: None }
}

fn create(zxid: i64, session: i64, path: &str) -> Txn {
    txn(zxid, session, Change::Create { path: path.to_owned(), ephemeral: true, data: vec![] })
}

fn delete(zxid: i64, session: i64, path: &str) -> Txn {
    txn(zxid, session, Change::Delete { path: path.to_owned() })
}

fn write(zxid: i64, session: i64, token: i64, number: u32, process: u32) -> Txn {
    let data = Stamp { token, number, process, thread: 0 }.encode();
    txn(zxid, session, Change::Set { path: "/soak/registers/queue-1".to_owned(), data, version: 0 })
}

fn ask(at: i64) -> Entry {
    entry(at, Event::Ask { lock: QUEUE, how: "acquire".to_owned(), part: String::new() })
}

fn got(at: i64, token: i64, session: i64) -> Entry {
    entry(at, Event::Got { token, session, state: State::Held })
}

fn wrote(at: i64, number: u32, sent: i64, written: Written) -> Entry {
    entry(at, Event::Wrote { number, sent: ms(sent), written })
}

fn look(at: i64, state: State) -> Entry {
    entry(at, Event::Look { state })
}

fn released(from: i64, until: i64) -> [Entry; 2] {
    [entry(from, Event::Release), entry(until, Event::Released { why: String::new() })]
}

impl Story {
    /// Client 1 (session 11) holds from 100 to 200, client 2 (session 12) from then to 300.
    fn good() -> Story {
        let txns = vec![
            create(100, 11, A),
            create(110, 12, B),
            write(120, 11, 100, 1, 1),
            delete(200, 11, A),
            write(220, 12, 110, 1, 2),
            write(230, 12, 110, 2, 2),
            delete(300, 12, B),
        ];
        let mut one = vec![ask(90), got(105, 100, 11), wrote(125, 1, 115, Written::Done)];
        one.push(look(190, State::Held));
        one.extend(released(195, 205));
        let mut two = vec![ask(95), got(206, 110, 12), wrote(225, 1, 215, Written::Done)];
        two.extend([look(226, State::Held), wrote(235, 2, 228, Written::Done)]);
        two.extend(released(290, 305));
        let journals = vec![(1, one), (2, two)];
        Story { txns, journals, faults: Vec::new(), crashed: Vec::new(), left: Vec::new() }
    }

    fn verdict(&self) -> Verdict {
        let locks = locks::all(1);
        let operators = BTreeSet::from([OPERATOR]);
        let history = History::of(&self.txns, &locks, &operators, &WallClock::default());
        Case {
            locks: &locks,
            history: &history,
            journals: &self.journals,
            faults: &self.faults,
            crashed: &self.crashed,
            left: &self.left,
            tolerance: Duration::from_millis(1),
            calm: ms(10_000),
            wait_limit: Duration::from_secs(1),
            hears_within: Duration::from_millis(500),
        }
        .judge()
    }

    /// The kinds of what is wrong with it, each once.
    fn wrongs(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.verdict().violations.iter().map(|it| it.kind).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    fn replace(&mut self, process: usize, at: usize, entry: Entry) {
        self.journals[process - 1].1[at] = entry;
    }

    fn fault(&mut self, kind: FaultKind, target: u32, from: i64, until: i64) {
        self.faults.push(Fault { kind, from: ms(from), until: ms(until), target });
    }
}

/// Client 1 is frozen while it holds, its session ends, and client 2 follows. It looks, and tries
/// to write, when it thaws.
fn slept_through() -> Story {
    let mut story = Story::good();
    story.txns[3] = txn(200, 11, Change::Close { paths: vec![A.to_owned()] });
    story.journals[0].1 = vec![
        ask(90),
        got(105, 100, 11),
        wrote(125, 1, 115, Written::Done),
        entry(270, Event::Told),
        look(271, State::Lost),
        wrote(275, 2, 272, Written::Refused),
    ];
    story.journals[0].1.extend(released(276, 277));
    story
}

#[test]
fn a_run_without_fault_is_found_to_be_one() {
    let verdict = Story::good().verdict();
    assert_eq!(verdict.violations, []);
    let counts = verdict.counts;
    assert_eq!((counts.acquisitions, counts.tenures, counts.unknown_tenures), (2, 2, 0));
    assert_eq!((counts.writes_done, counts.writes_refused, counts.looks), (3, 0, 4));
    assert_eq!(counts.longest_wait, Duration::from_millis(111));
}

#[test]
fn a_frozen_holder_may_sleep_through_its_end_but_not_write() {
    let mut story = slept_through();
    assert_eq!(story.wrongs(), [Kind::ToldLate], "nobody had frozen it");
    story.fault(FaultKind::ClientFrozen, 1, 130, 268);
    let verdict = story.verdict();
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.counts.frozen_through, verdict.counts.writes_too_late), (1, 1));
    assert_eq!(verdict.counts.lost, 1);

    story.txns.insert(6, write(273, 11, 100, 2, 1));
    assert_eq!(story.wrongs(), [Kind::Unfenced, Kind::TokenOrder, Kind::WriteReport]);
}

#[test]
fn who_sees_the_lock_only_when_it_is_lost_has_not_believed() {
    let mut story = slept_through();
    // Frozen between its acquire and its first look.
    let state = State::Lost;
    story.replace(1, 1, entry(270, Event::Got { token: 100, session: 11, state }));
    story.journals[0].1.drain(2..4);
    let verdict = story.verdict();
    assert_eq!((verdict.violations, verdict.counts.lost), (vec![], 1));
    story.replace(1, 1, got(270, 100, 11));
    assert!(story.wrongs().contains(&Kind::TooLate));
}

#[test]
fn a_process_without_a_processor_is_as_good_as_frozen() {
    let mut story = slept_through();
    let stalled = Entry { at: ms(267), thread: 9, event: Event::Stalled { since: ms(140) } };
    story.journals[0].1.insert(3, stalled);
    let verdict = story.verdict();
    assert_eq!((verdict.violations, verdict.counts.stalled_through), (vec![], 1));
}

#[test]
fn a_freeze_is_no_excuse_for_a_look_that_says_held() {
    let mut story = slept_through();
    story.fault(FaultKind::ClientFrozen, 1, 130, 268);
    story.replace(1, 4, look(271, State::Held));
    assert!(story.wrongs().contains(&Kind::TooLate));
    // A suspended lock is one that others can't have, too.
    story.replace(1, 4, look(271, State::Suspended));
    assert!(story.wrongs().contains(&Kind::TooLate));
}

#[test]
fn belief_before_the_tenure_is_found() {
    let mut story = Story::good();
    story.replace(2, 1, got(150, 110, 12));
    assert_eq!(story.wrongs(), [Kind::TooEarly]);
}

#[test]
fn belief_after_the_tenure_is_found() {
    let mut story = Story::good();
    story.replace(1, 3, look(210, State::Held));
    story.replace(1, 4, entry(211, Event::Release));
    assert!(story.wrongs().contains(&Kind::TooLate));
}

#[test]
fn belief_within_the_tolerance_is_no_violation() {
    let mut story = Story::good();
    story.replace(1, 3, look(200, State::Held));
    story.replace(1, 4, entry(201, Event::Release));
    assert_eq!(story.wrongs(), []);
}

#[test]
fn a_token_that_never_held_is_found() {
    let mut story = Story::good();
    // It gives up its place in the queue, and believes that it holds all the same.
    story.txns[3] = delete(190, 12, B);
    story.txns[6] = delete(300, 11, A);
    let wrongs = story.wrongs();
    assert!(wrongs.contains(&Kind::NeverHeld) && wrongs.contains(&Kind::Unfenced), "{wrongs:?}");
}

#[test]
fn a_waiter_that_is_robbed_may_come_to_hold_while_its_claim_is_young_and_for_a_short_time() {
    let robbed = |deleted, last_look| {
        let mut story = Story::good();
        story.txns.truncate(4);
        story.txns[3] = delete(deleted, OPERATOR, B);
        story.txns.push(delete(deleted, 11, A));
        let mut two = vec![ask(95), got(deleted + 1, 110, 12), look(last_look, State::Held)];
        two.push(look(last_look + 1, State::Lost));
        two.extend(released(last_look + 2, last_look + 3));
        story.journals[0].1.truncate(3);
        story.journals[0].1.extend(released(deleted - 1, deleted + 2));
        story.journals[1].1 = two;
        (story.wrongs(), story.verdict().counts.robbed_young)
    };
    assert_eq!(robbed(200, 230), (vec![], 1));
    assert_eq!(robbed(220, 230), (vec![Kind::NeverHeld], 0), "it had to look");
    assert_eq!(robbed(200, 910), (vec![Kind::NeverHeld], 0), "it had to hear of it");
}

#[test]
fn a_token_of_two_holders_is_found() {
    let mut story = Story::good();
    story.replace(2, 1, got(206, 100, 12));
    assert!(story.wrongs().contains(&Kind::SharedToken));
}

#[test]
fn a_write_before_and_one_after_the_tenure_are_found() {
    let mut story = Story::good();
    story.txns.insert(3, write(150, 12, 110, 1, 2));
    story.txns.remove(5);
    assert_eq!(story.wrongs(), [Kind::Unfenced]);

    let mut story = Story::good();
    story.txns.push(write(310, 12, 110, 3, 2));
    assert_eq!(story.wrongs(), [Kind::Unfenced]);
}

#[test]
fn a_write_from_another_session_is_found() {
    let mut story = Story::good();
    story.txns[2] = write(120, 12, 100, 1, 1);
    assert_eq!(story.wrongs(), [Kind::Unfenced]);
}

#[test]
fn a_register_that_goes_back_is_found() {
    let mut story = Story::good();
    story.txns.swap(4, 5);
    assert_eq!(story.wrongs(), [Kind::TokenOrder]);
}

#[test]
fn tenures_whose_tokens_do_not_grow_are_found() {
    let mut story = Story::good();
    // The later one in the queue is the older node.
    story.txns[0] = create(100, 11, B);
    story.txns[1] = create(99, 12, A);
    assert!(story.wrongs().contains(&Kind::TokenOrder));
}

#[test]
fn a_confirmed_write_that_was_not_done_is_found() {
    let mut story = Story::good();
    story.txns.remove(5);
    assert_eq!(story.wrongs(), [Kind::WriteReport]);
}

#[test]
fn a_write_of_unknown_outcome_may_be_done_or_not() {
    for done in [true, false] {
        let mut story = Story::good();
        story.replace(2, 4, wrote(235, 2, 228, Written::Unknown));
        if !done {
            story.txns.remove(5);
        }
        assert_eq!(story.wrongs(), []);
    }
}

#[test]
fn who_waits_for_ever_is_found_unless_it_was_killed() {
    let mut story = Story::good();
    story.journals.push((3, vec![ask(100)]));
    assert_eq!(story.wrongs(), [Kind::Hung]);
    story.fault(FaultKind::ClientKilled, 3, 120, 130);
    assert_eq!(story.wrongs(), []);
}

#[test]
fn a_release_that_never_ends_is_found() {
    let mut story = Story::good();
    story.journals[1].1.pop();
    assert_eq!(story.wrongs(), [Kind::Hung]);
}

#[test]
fn a_wait_is_too_long_only_when_the_faults_are_over() {
    let ends = |at| {
        let mut story = Story::good();
        let none = entry(at, Event::None { why: "timeout".to_owned() });
        story.journals.push((3, vec![ask(100), none]));
        story.wrongs()
    };
    assert_eq!(ends(10_900), []);
    assert_eq!(ends(11_100), [Kind::Hung]);
}

#[test]
fn a_close_that_reports_success_has_ended_the_session() {
    let mut story = Story::good();
    story.txns.push(txn(400, 11, Change::Close { paths: vec![] }));
    story.journals[0].1.push(entry(401, Event::Closed { session: 11 }));
    assert_eq!((story.wrongs(), story.verdict().counts.closed), (vec![], 1));
    // Later, or never.
    for at in [390, 401] {
        story.journals[0].1.pop();
        let session = if at == 390 { 11 } else { 12 };
        story.journals[0].1.push(entry(at, Event::Closed { session }));
        assert_eq!(story.wrongs(), [Kind::Unclosed]);
    }
}

#[test]
fn failures_orphans_and_crashes_are_told() {
    let mut story = Story::good();
    story.journals.push((3, vec![ask(100), entry(101, Event::Failed { why: "x".to_owned() })]));
    assert_eq!(story.wrongs(), [Kind::Failed]);

    let mut story = Story::good();
    story.txns.pop();
    assert_eq!(story.wrongs(), [Kind::Orphan]);
    let mut story = Story::good();
    story.left.push(A.to_owned());
    assert_eq!(story.wrongs(), [Kind::Orphan]);

    let mut story = Story::good();
    story.crashed.push(2);
    assert_eq!(story.wrongs(), [Kind::Crashed]);
}

/// Client 1 is robbed at 150, and looks and writes until it hears of it at 280; client 2 follows at
/// once.
fn robbed() -> Story {
    let mut story = Story::good();
    story.txns[3] = delete(150, OPERATOR, A);
    story.replace(1, 3, look(270, State::Held));
    story.journals[0].1.truncate(4);
    let refused = wrote(279, 2, 272, Written::Refused);
    story.journals[0].1.extend([refused, entry(280, Event::Told), look(281, State::Lost)]);
    story.journals[0].1.extend(released(282, 283));
    story
}

#[test]
fn a_holder_that_an_operator_robbed_may_hear_of_it_afterwards() {
    let mut story = robbed();
    let verdict = story.verdict();
    assert_eq!(verdict.violations, []);
    assert_eq!((verdict.counts.robbed, verdict.counts.writes_too_late), (1, 1));
    assert_eq!(verdict.counts.longest_unaware, Duration::from_millis(120));
    // The same by anybody else.
    story.txns[3] = delete(150, 12, A);
    assert_eq!(story.wrongs(), [Kind::TooLate, Kind::ToldLate, Kind::Theft]);
}

#[test]
fn a_robbed_holder_that_never_hears_of_it_is_found() {
    let mut story = robbed();
    story.replace(1, 3, look(651, State::Held));
    story.replace(1, 5, entry(652, Event::Told));
    story.replace(1, 6, look(653, State::Lost));
    story.replace(1, 7, entry(654, Event::Release));
    story.replace(1, 8, entry(655, Event::Released { why: String::new() }));
    assert_eq!(story.wrongs(), [Kind::TooLate, Kind::ToldLate]);
}

#[test]
fn the_successor_of_a_robbed_holder_is_judged_as_ever() {
    let mut story = robbed();
    story.replace(2, 3, look(310, State::Held));
    story.replace(2, 5, entry(311, Event::Release));
    story.replace(2, 6, entry(312, Event::Released { why: String::new() }));
    let wrongs = story.wrongs();
    assert!(wrongs.contains(&Kind::TooLate), "{wrongs:?}");
}

#[test]
fn a_stale_release_that_deletes_a_successors_claim_is_found() {
    // The directory was made anew, and its numbers begin again.
    let mut story = Story::good();
    story.txns[1] = delete(150, OPERATOR, A);
    story.txns[3] = create(160, 12, A);
    story.txns[6] = delete(300, 12, A);
    story.txns.retain(|txn| txn.zxid < 200);
    story.txns.sort_by_key(|txn| txn.zxid);
    story.journals[1].1 = vec![ask(155), got(165, 160, 12), look(290, State::Held)];
    story.journals[1].1.extend(released(295, 305));
    let mut kept = story.txns.clone();
    story.txns.push(delete(300, 12, A));
    assert_eq!(story.wrongs(), []);
    kept.push(delete(200, 11, A));
    story.txns = kept;
    assert!(story.wrongs().contains(&Kind::Theft), "{:?}", story.wrongs());
}

#[test]
fn a_claim_that_its_own_session_deletes_while_it_is_held_is_found() {
    let mut story = Story::good();
    // Nobody comes after it, and it does not look again.
    story.txns[6] = delete(280, 12, B);
    assert_eq!(story.wrongs(), [Kind::Undermined]);
}

#[test]
fn a_write_that_a_namesake_let_pass_is_counted_and_any_other_is_a_violation() {
    let mut story = robbed();
    story.txns = vec![
        create(100, 11, A),
        write(120, 11, 100, 1, 1),
        delete(150, OPERATOR, A),
        create(160, 12, A),
        write(275, 11, 100, 2, 1),
        delete(300, 12, A),
    ];
    story.replace(1, 4, wrote(279, 2, 272, Written::Done));
    story.journals[1].1 = vec![ask(155), got(165, 160, 12)];
    story.journals[1].1.extend(released(295, 305));
    let verdict = story.verdict();
    assert_eq!((verdict.violations, verdict.counts.writes_by_namesake), (vec![], 1));
    // Without the namesake.
    story.txns[3] = create(160, 12, B);
    story.txns[5] = delete(300, 12, B);
    assert_eq!(story.wrongs(), [Kind::Unfenced]);
}

/// Client 1 is broken off at 180: it hears of it at 185, tries to write, and its claim goes at 200.
fn broken_off() -> Story {
    let mut story = Story::good();
    let order = Change::Set { path: A.to_owned(), data: vec![], version: 1 };
    story.txns.insert(3, txn(180, OPERATOR, order));
    story.replace(1, 3, look(175, State::Held));
    story.journals[0].1.truncate(4);
    let refused = wrote(188, 2, 187, Written::Refused);
    story.journals[0].1.extend([entry(185, Event::Told), look(186, State::Lost), refused]);
    story.journals[0].1.extend(released(210, 212));
    story
}

#[test]
fn a_holder_that_is_broken_off_has_lost_it_before_its_claim_goes() {
    let mut story = broken_off();
    let verdict = story.verdict();
    assert_eq!(verdict.violations, []);
    let counts = verdict.counts;
    assert_eq!((counts.broken, counts.broken_off, counts.writes_when_lost), (1, 1, 1));
    // Not by an operator's order, it may be that of a lost session, but not before its holder knows that.
    story.txns.remove(3);
    assert_eq!(story.wrongs(), []);
    story.replace(1, 4, entry(203, Event::Told));
    story.replace(1, 5, look(204, State::Lost));
    story.replace(1, 6, wrote(206, 2, 205, Written::Refused));
    assert_eq!(story.wrongs(), [Kind::ToldLate, Kind::Undermined]);
    // It could not hear of it earlier.
    let stalled = Entry { at: ms(202), thread: 9, event: Event::Stalled { since: ms(190) } };
    story.journals[0].1.insert(4, stalled);
    assert_eq!(story.wrongs(), []);
    // But it still believes in it.
    let lost = [Event::Told, Event::Look { state: State::Lost }];
    story.journals[0].1.retain(|entry| !lost.contains(&entry.event));
    assert_eq!(story.wrongs(), [Kind::Undermined]);
}

#[test]
fn a_holder_whose_claim_goes_before_it_has_lost_it_is_found() {
    let mut story = broken_off();
    // Also where nobody comes to hold then.
    story.txns.retain(|txn| txn.session != 12);
    story.journals.pop();
    assert_eq!(story.wrongs(), []);
    story.replace(1, 4, entry(203, Event::Told));
    story.replace(1, 5, look(204, State::Lost));
    story.replace(1, 6, wrote(206, 2, 205, Written::Refused));
    assert_eq!(story.wrongs(), [Kind::ToldLate]);
    let stalled = Entry { at: ms(202), thread: 9, event: Event::Stalled { since: ms(190) } };
    story.journals[0].1.insert(4, stalled);
    let verdict = story.verdict();
    assert_eq!((verdict.violations, verdict.counts.stalled_through), (vec![], 1));
    assert_eq!((verdict.counts.broken, verdict.counts.broken_off), (1, 0));
}

#[test]
fn a_write_that_was_sent_after_the_loss_and_was_done_is_found() {
    let mut story = broken_off();
    story.replace(1, 6, wrote(188, 2, 187, Written::Done));
    story.txns.insert(4, write(188, 11, 100, 2, 1));
    assert_eq!(story.wrongs(), [Kind::WroteWhenLost]);
    // Sent before.
    story.replace(1, 6, wrote(188, 2, 184, Written::Done));
    assert_eq!(story.wrongs(), []);
}

/// What is wrong with such tenures: token, what they hold, begin and end.
fn together(tenures: &[(i64, Part, i64, i64)], limit: u32) -> Vec<Kind> {
    let locks = locks::all(1);
    let point = |zxid| Point { zxid, at: ms(zxid) };
    let tenure = |&(token, part, begin, end): &(i64, Part, i64, i64)| Tenure {
        token,
        session: token,
        part,
        node: String::new(),
        begin: point(begin),
        end: Some(point(end)),
        ended_by: Some(Hand::Owner),
        follows_a_robbery: false,
        broken: None,
    };
    let mut history = History::default();
    history.locks.resize_with(locks.len(), LockHistory::default);
    history.locks[0].tenures = tenures.iter().map(tenure).collect();
    history.locks[0].limits = vec![(point(0), limit)];
    let story = Story::good();
    let case = Case {
        locks: &locks,
        history: &history,
        journals: &[],
        faults: &story.faults,
        crashed: &[],
        left: &[],
        tolerance: Duration::from_millis(1),
        calm: ms(10_000),
        wait_limit: Duration::from_secs(1),
        hears_within: Duration::from_millis(500),
    };
    case.judge().violations.iter().map(|it| it.kind).collect()
}

#[test]
fn who_holds_beside_others_that_it_excludes_is_found() {
    use Part::{Alone, Permits, Reads};
    for (tenures, limit, wrong) in [
        (vec![(1, Reads, 1, 9), (2, Reads, 2, 8), (3, Alone, 9, 10)], 0, vec![]),
        (vec![(1, Reads, 1, 9), (3, Alone, 8, 10)], 0, vec![Kind::Together]),
        (vec![(1, Alone, 1, 9), (3, Alone, 8, 10)], 0, vec![Kind::Together]),
        (vec![(1, Permits(2), 1, 9), (2, Permits(1), 8, 10)], 3, vec![]),
        (vec![(1, Permits(2), 1, 9), (2, Permits(2), 9, 10)], 3, vec![]),
        (vec![(1, Permits(2), 1, 9), (2, Permits(2), 8, 10)], 3, vec![Kind::Together]),
    ] {
        assert_eq!(together(&tenures, limit), wrong, "{tenures:?}");
    }
}

#[test]
fn a_reader_that_overtakes_a_writer_is_found() {
    use Part::{Alone, Reads};
    let in_turn = [(1, Reads, 1, 5), (2, Alone, 5, 6), (3, Reads, 6, 9)];
    assert_eq!(together(&in_turn, 0), []);
    // By its token the second reader came after the writer.
    let overtaken = [(1, Reads, 1, 5), (3, Reads, 4, 5), (2, Alone, 5, 6)];
    let wrongs = together(&overtaken, 0);
    assert!(wrongs.contains(&Kind::Overtaken), "{wrongs:?}");
}
