//! One contestant's turn: its process, what it prints, and what the servers count meanwhile.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Trouble;
use crate::servers::{Counters, Servers};

/// What a turn has measured, by the names that contestants print.
pub type Sample = BTreeMap<String, f64>;

/// How long connecting, starting and ending may take beside the time that is measured.
const PATIENCE: Duration = Duration::from_secs(120);

/// The process; it ends with this value.
struct Playing(Child);

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// # Errors
/// What the process said last, if it failed; that it took too long, or printed no result.
pub fn play(command: &mut Command, servers: &Servers, seconds: f64) -> Result<Sample, Trouble> {
    let mut said = tempfile::tempfile().map_err(|error| error.to_string())?;
    let stderr = said.try_clone().map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let child = command
        .spawn()
        .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    let mut playing = Playing(child);
    let lines = lines_of(&mut playing.0);
    let listened =
        listen(&lines, servers, Instant::now() + PATIENCE + Duration::from_secs_f64(2.0 * seconds));
    let sample = listened.and_then(|sample| {
        let status = playing.0.wait().map_err(|error| error.to_string())?;
        if status.success() {
            sample.ok_or("it printed no result".to_owned())
        } else {
            Err(status.to_string())
        }
    });
    sample.map_err(|trouble| {
        let mut text = String::new();
        let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
        // What follows a panic is no reason.
        match text.trim().lines().rfind(|line| !line.starts_with("note: ")) {
            Some(last) => format!("{trouble}: {last}"),
            None => trouble,
        }
    })
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}

/// Reads until the process has closed its output.
fn listen(
    lines: &Receiver<String>,
    servers: &Servers,
    until: Instant,
) -> Result<Option<Sample>, Trouble> {
    use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
    let (mut before, mut traffic): (Option<Counters>, Option<(u64, u64)>) = (None, None);
    let mut sample = None;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) if line == "begin" => before = Some(servers.counters()?),
            Ok(line) if line == "end" => {
                let after = servers.counters()?;
                traffic = before.map(|before| servers.between(before, after));
            }
            Ok(line) if line.starts_with('{') => sample = Some(parse(&line)?),
            Ok(_) => {}
            Err(Timeout) => return Err("it took too long".to_owned()),
            Err(Disconnected) => break,
        }
    }
    Ok(sample.map(|sample| complete(sample, traffic)))
}

fn parse(line: &str) -> Result<Sample, Trouble> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
    let fields = value.as_object().into_iter().flatten();
    Ok(fields.filter_map(|(key, value)| Some((key.clone(), value.as_f64()?))).collect())
}

/// Adds what follows from the counts.
fn complete(mut sample: Sample, traffic: Option<(u64, u64)>) -> Sample {
    let field = |sample: &Sample, key| sample.get(key).copied().filter(|value| *value > 0.0);
    if let Some(count) = field(&sample, "count") {
        if let Some(seconds) = field(&sample, "seconds") {
            sample.insert("per_second".to_owned(), count / seconds);
        }
        if let Some((packets, events)) = traffic {
            sample.insert("packets".to_owned(), packets as f64 / count);
            sample.insert("events".to_owned(), events as f64 / count);
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_packets_follow_from_counts() {
        let sample = parse(r#"{"count":100,"seconds":2.0,"p50_us":7}"#).unwrap();
        let sample = complete(sample, Some((400, 100)));
        let expected = [("count", 100.0), ("events", 1.0), ("p50_us", 7.0), ("packets", 4.0)];
        for (key, value) in expected.into_iter().chain([("per_second", 50.0)]) {
            assert_eq!(sample.get(key), Some(&value), "{key}");
        }
    }

    #[test]
    fn who_counted_nothing_has_no_rate() {
        let sample = complete(parse(r#"{"count":0,"seconds":2.0}"#).unwrap(), Some((4, 0)));
        assert!(!sample.contains_key("per_second") && !sample.contains_key("packets"));
    }
}
