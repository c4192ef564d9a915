//! Texts that others have written, and times, for people.

use std::env;
use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use crate::failure::Failure;

/// Longer ones are cut.
const LONGEST: usize = 256;

/// One line that a terminal shows as what it is.
pub fn one_line(text: &str) -> String {
    text.chars().take(LONGEST).map(|c| if is_harmless(c) { c } else { ' ' }).collect()
}

/// No wider than that, with an ellipsis where something is left out. The end of a path is what tells it from others.
pub fn cut(text: &str, width: usize) -> String {
    let (length, kept) = (text.chars().count(), width.saturating_sub(1));
    if length <= width {
        text.to_owned()
    } else if text.starts_with('/') {
        ['…'].into_iter().chain(text.chars().skip(length - kept)).collect()
    } else {
        text.chars().take(kept).chain(['…']).collect()
    }
}

/// Lines of whole words, no wider than that unless a word is.
pub fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Neither moves the cursor nor turns the direction of writing.
fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `3h 12m`: in two units at most.
pub fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let text = humantime::format_duration(Duration::from_secs(seconds)).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// The time since then, by this machine's clock.
pub fn since(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or(Duration::ZERO)
}

/// How long ago that was.
pub fn ago(time: SystemTime) -> String {
    rough(since(time))
}

/// As `2026-11-23T04:05:06Z`.
pub fn stamp(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// A time; a plain number is seconds, as in `flock` and `timeout`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    /// A century: sums of two are still times.
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);
    let parsed = match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
        Err(_) => humantime::parse_duration(text).map_err(|error| error.to_string()),
    }?;
    if parsed > LONGEST { Err("longer than 100 years".to_owned()) } else { Ok(parsed) }
}

/// A variable of the environment.
///
/// # Errors
/// It is no text.
pub fn variable(name: &str) -> Result<Option<String>, Failure> {
    let value = env::var_os(name).map(OsString::into_string).transpose();
    value.map_err(|value| Failure::new(format!("{name}: not UTF-8: {}", value.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rough() {
        assert_eq!(rough(Duration::from_millis(3_900)), "3s");
        assert_eq!(rough(Duration::from_secs(3 * 3_600 + 62)), "3h 1m");
    }

    #[test]
    fn what_is_cut_keeps_its_beginning_or_of_a_path_the_end() {
        assert_eq!(cut("report", 6), "report");
        assert_eq!(cut("report", 5), "repo…");
        assert_eq!(cut("/locks/report", 7), "…report");
        assert_eq!(cut("/locks", 1), "…");
    }

    #[test]
    fn a_line_stays_one() {
        assert_eq!(one_line("a\n\u{1b}[2Jb\u{202e}"), "a  [2Jb ");
    }

    #[test]
    fn a_plain_number_is_seconds() {
        assert_eq!(parse_duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_duration("0.25"), parse_duration("250ms"));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for bad in ["", "-1", "5 parsecs", "inf", "NaN", "1e30", "18446744073709551615s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
