//! The page. What others have written into znodes is text here: the macro escapes whatever it is given.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use maud::{DOCTYPE, Markup, html};
use zklock::Contender;

use super::choice::{Choice, link};
use super::timeline::timeline;
use crate::follow::shared::{Picture, View, connection_name};
use crate::look::who::{in_short, library_of};
use crate::text::{ago, one_line, stamp};

/// So many locks are shown, those that most wait for; and so many of one queue.
const LOCKS: usize = 300;
const QUEUE: usize = 50;
/// The timeline moves on when nothing else does.
const STILL: u64 = 10;

pub fn whole(path: &str, picture: &Picture, choice: &Choice) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "zklock " (path.escape_debug()) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
                noscript { meta http-equiv="refresh" content="10"; }
            }
            body {
                p.gone role="alert" { "zklock serve does not answer: what is shown is old." }
                form {
                    input type="search" name="filter" value=(choice.filter) placeholder="filter by path" aria-label="filter by path";
                    input type="hidden" name="minutes" value=(choice.minutes);
                }
                main { (now(path, picture, choice)) }
            }
        }
    }
}

/// Of what [`now`] shows.
pub fn version(picture: &Picture, choice: &Choice) -> String {
    let choice = link(choice.minutes, &choice.filter);
    format!("{}-{choice}-{}", picture.version, millis(SystemTime::now()) / 1_000 / STILL)
}

/// All that changes.
pub fn now(path: &str, picture: &Picture, choice: &Choice) -> Markup {
    let locks = picture.locks.iter().filter(|lock| choice.has(&lock.found.path));
    let mut locks: Vec<&Arc<View>> = locks.collect();
    locks.sort_by_key(|lock| Reverse(lock.waiters()));
    html! {
        header data-now=(millis(SystemTime::now())) {
            h1 { "Locks below " code { (path.escape_debug()) } }
            (connection(picture))
            p.sums {
                b { (picture.held()) } " held" span { b { (picture.waiting()) } " waiting" }
                @if !picture.is_complete { span { b { (picture.unread) } " znodes to read" } }
                @if picture.left_out > 0 { span.bad { b { (picture.left_out) } " znodes left out" } }
            }
        }
        @if locks.is_empty() && picture.is_complete {
            p.none {
                @if choice.filter.is_empty() { "Nobody holds a lock there, or waits for one." }
                @else { "No such lock is held or waited for. " a href=(link(choice.minutes, "")) { "Show all" } }
            }
        }
        @if !locks.is_empty() {
            table {
                thead { tr { th { "Lock" } th { "Kind" } th { "Holder" } th.number { "For" } th.number { "Waiting" } } }
                tbody { @for lock in locks.iter().take(LOCKS) { (row(lock, choice)) } }
            }
        }
        @if locks.len() > LOCKS {
            p.none { (locks.len() - LOCKS) " more locks are not shown." }
        }
        (timeline(picture, choice))
    }
}

fn connection(picture: &Picture) -> Markup {
    let name = connection_name(picture.connection);
    let is_new = |at: &SystemTime| at.elapsed().is_ok_and(|age| age.as_secs() < STILL);
    html! {
        @if picture.is_connected() {
            p.state { (name) }
        } @else {
            p.state.bad { (name) ", " (time(picture.connection_since)) " ago: what is shown is old" }
        }
        @if let Some((_, error)) = picture.error.as_ref().filter(|(at, _)| is_new(at)) {
            p.bad { (one_line(error)) }
        }
    }
}

fn row(lock: &View, choice: &Choice) -> Markup {
    let waiting = lock.waiters();
    let path = lock.found.path.escape_debug().to_string();
    html! {
        tr {
            td {
                a.path href={ (link(choice.minutes, &lock.found.path)) "#holds" } { (path) }
                small { (lock.found.libraries().join(", ")) }
            }
            td { (lock.found.kinds()) }
            td {
                @if lock.holders() == 0 { span.none { "nobody" } }
                @for contender in holders(lock).take(QUEUE) {
                    div { (in_short(contender)) small { "token " (contender.token) } }
                }
                @if waiting > 0 {
                    details data-key=(path) {
                        summary { (waiting) " waiting" }
                        ol { @for contender in waiters(lock).take(QUEUE) { (waiter(contender)) } }
                        @if waiting > QUEUE { p.none { (waiting - QUEUE) " more" } }
                    }
                }
            }
            td.number { @if let Some(since) = lock.since() { (time(since)) } @else { "-" } }
            td.number { (waiting) }
        }
    }
}

fn holders(lock: &View) -> impl Iterator<Item = &Contender> {
    lock.contenders.iter().filter(|contender| contender.held_since.is_some())
}

fn waiters(lock: &View) -> impl Iterator<Item = &Contender> {
    lock.contenders.iter().filter(|contender| contender.held_since.is_none())
}

fn waiter(contender: &Contender) -> Markup {
    html! {
        li { (in_short(contender)) small { "for " (time(contender.since)) ", " (library_of(contender)) } }
    }
}

/// How long ago; on hover, when.
fn time(at: SystemTime) -> Markup {
    html! { time datetime=(stamp(at)) title=(stamp(at)) data-ms=(millis(at)) { (ago(at)) } }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}
