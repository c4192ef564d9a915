//! Who held what when, as bars.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use maud::{Markup, html};
use zklock::Contender;

use super::choice::{Choice, SPANS, link};
use crate::follow::holds::Hold;
use crate::follow::shared::Picture;
use crate::look::who::in_short;
use crate::text::{rough, stamp};

/// So many locks have a row, those last held; and so many bars there are, the last.
const ROWS: usize = 40;
const BARS: usize = 2_000;
/// A row's, in units of its own.
const WIDTH: f64 = 1_000.0;
/// A bar is no narrower.
const THIN: f64 = 1.5;
/// Of those who hold at once, so many have a line of their own.
const LINES: usize = 10;
/// How many colours tell holders apart.
const COLOURS: u64 = 6;

pub fn timeline(picture: &Picture, choice: &Choice) -> Markup {
    let minutes = choice.minutes;
    let now = SystemTime::now();
    let span = Duration::from_secs(u64::from(minutes) * 60);
    let begin = now.checked_sub(span).unwrap_or(SystemTime::UNIX_EPOCH);
    let running = picture.locks.iter().flat_map(|lock| lock.holds.iter());
    let ended = picture.past.iter().rev();
    let seen = running.chain(ended).filter(|hold| choice.has(&hold.path));
    let seen = seen.filter(|hold| hold.ended.is_none_or(|ended| ended > begin));
    let mut rows: Vec<(&str, Vec<&Arc<Hold>>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut left_out = 0;
    for hold in seen.take(BARS) {
        match places.get(&*hold.path) {
            Some(place) => rows[*place].1.push(hold),
            None if rows.len() < ROWS => {
                places.insert(&hold.path, rows.len());
                rows.push((&hold.path, vec![hold]));
            }
            None => left_out += 1,
        }
    }
    rows.sort_by_key(|(path, _)| *path);
    let scale = Scale { begin, span };
    html! {
        h2 id="holds" { "Holds" }
        nav {
            @for span in { let mut spans = SPANS; spans.sort_unstable(); spans } {
                @let chosen = (span == minutes).then_some("true");
                a href=(link(span, &choice.filter)) aria-current=[chosen] { (label(span)) }
            }
        }
        @if rows.is_empty() {
            p.none { "Nobody has held a lock for " (label(minutes)) "." }
        }
        div.timeline {
            @for (path, holds) in &rows {
                span.path title=(path.escape_debug()) { (path.escape_debug()) }
                (row(holds, &scale, now))
            }
            @if !rows.is_empty() {
                span {}
                div.axis { span { (label(minutes)) " ago" } span { "now" } }
            }
        }
        @if left_out > 0 {
            p.none { (left_out) " more holds, of locks that are not shown." }
        }
    }
}

fn label(minutes: u32) -> String {
    if minutes < 60 { format!("{minutes} min") } else { format!("{} h", minutes / 60) }
}

struct Scale {
    begin: SystemTime,
    span: Duration,
}

impl Scale {
    fn place(&self, time: SystemTime) -> f64 {
        let since = time.duration_since(self.begin).unwrap_or_default();
        (since.as_secs_f64() / self.span.as_secs_f64()).min(1.0) * WIDTH
    }
}

/// Those that overlap lie below each other.
fn row(holds: &[&Arc<Hold>], scale: &Scale, now: SystemTime) -> Markup {
    let mut holds = holds.to_vec();
    holds.sort_by_key(|hold| hold.began);
    // When the last of each line ends.
    let mut lines: Vec<SystemTime> = Vec::new();
    let placed: Vec<(usize, &Arc<Hold>)> = holds
        .into_iter()
        .map(|hold| {
            let free = lines.iter().position(|end| *end <= hold.began);
            let line = free.unwrap_or(lines.len()).min(LINES - 1);
            lines.resize(lines.len().max(line + 1), SystemTime::UNIX_EPOCH);
            lines[line] = hold.ended.unwrap_or(now);
            (line, hold)
        })
        .collect();
    // One alone is as high as two of several.
    let height = if lines.len() == 1 { 16 } else { 8 * lines.len() };
    html! {
        svg viewBox={ "0 0 1000 " (lines.len()) } height=(height) preserveAspectRatio="none" role="img" {
            @for (line, hold) in placed { (bar(hold, line, scale, now)) }
        }
    }
}

fn bar(hold: &Hold, line: usize, scale: &Scale, now: SystemTime) -> Markup {
    let (from, to) = (scale.place(hold.began), scale.place(hold.ended.unwrap_or(now)));
    let width = (to - from).max(THIN);
    let from = from.min(WIDTH - width);
    let lasted = hold.ended.unwrap_or(now).duration_since(hold.began).unwrap_or_default();
    let since = if hold.was_seen_to_begin { "" } else { "not before " };
    let ended = hold.ended.map_or_else(|| "now".to_owned(), stamp);
    html! {
        rect class=(colour(&hold.holder)) x=(format!("{from:.1}")) width=(format!("{width:.1}")) y=(line) height="1" {
            title {
                (in_short(&hold.holder)) ", " (rough(lasted)) "\n"
                (since) (stamp(hold.began)) " to " (ended) "\ntoken " (hold.holder.token)
            }
        }
    }
}

/// The same for all that one calls itself by one label, on a host.
fn colour(holder: &Contender) -> String {
    let mut hasher = DefaultHasher::new();
    match holder.label.as_str() {
        "" => (&holder.host, holder.pid, holder.session).hash(&mut hasher),
        label => (&holder.host, label).hash(&mut hasher),
    }
    format!("c{}", hasher.finish() % COLOURS)
}
