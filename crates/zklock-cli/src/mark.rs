//! The persistent mark of a lock's last run (`zklock run --once-per`): a znode beside the lock's, written only while
//! the lock is held. Its times are the servers': those of its own writes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::system::uname;
use zklock::zookeeper::{Acl, CreateMode, Op, Stat};
use zklock::{Client, Code, Guard, LockError, Pending};

use crate::failure::Failure;
use crate::output::say;
use crate::text::one_line;

const MAGIC: &str = "zklock-run/1";

/// The outcome if the command was not started. Such a run does not count.
pub const NOT_STARTED: &str = "not started";

/// How long a mark may take to be written before it is looked for, and written again.
const STEP: Duration = Duration::from_secs(1);
/// The pause before that.
pub const PAUSE: Duration = Duration::from_millis(100);

/// The last millisecond of the year 9999.
const LATEST: i64 = 253_402_300_799_999;

/// Who ran last under a lock, when, and how that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub token: i64,
    pub host: String,
    pub pid: u32,
    pub label: String,
    /// In milliseconds since 1970, by the servers' clock; `None` until it was written.
    started: Option<i64>,
    ended: Option<i64>,
    /// A status, or `lost`; `None` until it has ended.
    pub outcome: Option<String>,
}

/// Where the mark of a lock is: beside it, where no library takes it for a claim.
pub fn path_of(lock: &str) -> String {
    format!("{lock}.last")
}

/// The mark of a lock, if anybody has ever left one.
///
/// # Errors
/// No server answers, or something else is there.
pub fn read(client: &Client, lock: &str) -> Result<Option<(Mark, Stat)>, Failure> {
    let path = path_of(lock);
    match client.get(&path).wait() {
        // Created, and not written any more.
        Ok(znode) if znode.data.is_empty() => Ok(None),
        Ok(znode) => match Mark::parse(&znode.data, &znode.stat) {
            Some(mark) => Ok(Some((mark, znode.stat))),
            None => Err(Failure::new(format!(
                "{path}: is no mark of `zklock run --once-per`: another program's znode is in its place"
            ))),
        },
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Mark {
    pub fn new(token: i64, label: &str) -> Mark {
        let host = uname().nodename().to_string_lossy().into_owned();
        let (pid, label) = (std::process::id(), label.to_owned());
        Mark { token, host, pid, label, ..Mark::default() }
    }

    /// When the run was started.
    pub fn started(&self) -> SystemTime {
        time(self.started)
    }

    pub fn ended(&self) -> Option<SystemTime> {
        self.ended.map(|ended| time(Some(ended)))
    }

    fn parse(data: &[u8], stat: &Stat) -> Option<Mark> {
        let text = std::str::from_utf8(data).ok()?;
        let mut lines = text.lines();
        if lines.next() != Some(MAGIC) {
            return None;
        }
        let time = |text: &str| text.parse().ok().filter(|time| (0..=LATEST).contains(time));
        let mut mark = Mark::default();
        for (key, value) in lines.filter_map(|line| line.split_once('=')) {
            match key {
                "token" => mark.token = value.parse().ok()?,
                "host" => mark.host = one_line(value),
                "pid" => mark.pid = value.parse().unwrap_or(0),
                "label" => mark.label = one_line(value),
                "started" => mark.started = time(value),
                "ended" => mark.ended = time(value),
                "outcome" => mark.outcome = Some(one_line(value)),
                // A later version may know more.
                _ => {}
            }
        }
        // What was not known when it was written is when it was written.
        if mark.outcome.is_none() {
            mark.started.get_or_insert(stat.mtime);
        } else {
            mark.ended.get_or_insert(stat.mtime);
        }
        Some(mark)
    }

    fn write(&self) -> Vec<u8> {
        let Mark { token, host, pid, label, .. } = self;
        let (host, label) = (one_line(host), one_line(label));
        let mut text = format!("{MAGIC}\ntoken={token}\nhost={host}\npid={pid}\nlabel={label}\n");
        let times = [("started", self.started), ("ended", self.ended)];
        for (key, time) in times.iter().filter_map(|(key, time)| Some((key, (*time)?))) {
            text += &format!("{key}={time}\n");
        }
        if let Some(outcome) = &self.outcome {
            text += &format!("outcome={outcome}\n");
        }
        text.into_bytes()
    }

    /// Whether the run is one that counts where only those do which have succeeded.
    pub fn has_succeeded(&self) -> bool {
        self.outcome.as_deref() == Some("0")
    }

    /// Whether the command was started. Otherwise the run does not count.
    pub fn was_started(&self) -> bool {
        self.outcome.as_deref() != Some(NOT_STARTED)
    }

    /// How long ago it was started, by the clock of the servers: they are asked by a write that changes nothing else.
    /// `None`: the start is more than a period in the future. The servers' clock was wrong when the mark was written.
    fn age(
        &self,
        guard: &Guard,
        path: &str,
        stat: &Stat,
        period: Duration,
    ) -> Result<Option<Duration>, Failure> {
        let now = sent(|| guard.set(path, &self.write(), Some(stat.version)))?.mtime;
        let started = self.started.unwrap_or(now);
        if u128::from(started.saturating_sub(now).unsigned_abs()) > period.as_millis()
            && started > now
        {
            return Ok(None);
        }
        Ok(Some(Duration::from_millis(u64::try_from(now - started).unwrap_or(0))))
    }
}

/// A run that leaves a mark.
pub struct MarkedRun {
    path: String,
    mark: Mark,
}

/// Whether there is to be a run.
pub enum Beginning {
    Run(MarkedRun),
    /// There was one, so long ago.
    RanAlready(Mark, Duration),
}

impl MarkedRun {
    /// Leaves the mark that a run is started now, unless one that counts was started within the period. The lock has
    /// to be held, and each write happens only while it is.
    ///
    /// # Errors
    /// The lock is lost, or the mark can't be written; or the error of `pause`.
    pub fn begin<E: From<Failure>>(
        (client, guard): (&Client, &Guard),
        (lock, label): (&str, &str),
        acl: Vec<Acl>,
        period: Duration,
        counts: impl Fn(&Mark) -> bool,
        pause: impl Fn() -> Result<(), E>,
    ) -> Result<Beginning, E> {
        let fail = |error: LockError| E::from(error.into());
        let path = path_of(lock);
        // A server that lags behind must not show the mark of before the last run.
        client.sync(&path).wait().map_err(Failure::from)?;
        match read(client, lock)? {
            Some((mark, stat)) if mark.was_started() && counts(&mark) => {
                match mark.age(guard, &path, &stat, period)? {
                    Some(age) if age < period => return Ok(Beginning::RanAlready(mark, age)),
                    Some(_) => {}
                    None => say(format_args!(
                        "{path}: a mark of the future does not count: the servers' clock was wrong at that time"
                    )),
                }
            }
            Some(_) => {}
            None if client.exists(&path).wait().map_err(Failure::from)?.is_none() => {
                let (path, data, mode) = (path.clone(), Vec::new(), CreateMode::Persistent);
                let create = [Op::Create { path, data, acl, mode }];
                sent(|| guard.multi(&create)).map_err(fail)?;
            }
            None => {}
        }
        let mut mark = Mark::new(guard.fencing_token(), label);
        mark.started = Some(loop {
            match guard.set(&path, &mark.write(), None).within(STEP).wait() {
                Ok(stat) => break stat.mtime,
                Err(LockError::OutcomeUnknown { .. } | LockError::TimedOut { .. }) => {}
                Err(error) if error.code() == Code::NOT_CONNECTED => {}
                Err(error) => return Err(fail(error)),
            }
            // If it is there, it counts, so the command must start. A lost connection is no reason to give up: only the
            // loss of the lock is, and the next write reports that.
            let looked = client.sync(&path).within(STEP).wait().is_ok().then(|| read(client, lock));
            match looked {
                Some(Ok(Some((there, stat)))) if there.token == mark.token => break stat.mtime,
                _ => {}
            }
            if let Err(why) = pause() {
                mark.outcome = Some(NOT_STARTED.to_owned());
                // If this write fails, the mark may count.
                let _ = guard.set(&path, &mark.write(), None).within(STEP).wait();
                return Err(why);
            }
        });
        Ok(Beginning::Run(MarkedRun { path, mark }))
    }

    /// Writes how it has ended, if the lock is still held: otherwise another run may have its mark there.
    ///
    /// # Errors
    /// The lock is lost, or the mark can't be written.
    pub fn end(mut self, guard: &Guard, outcome: &str) -> Result<(), Failure> {
        self.mark.outcome = Some(outcome.to_owned());
        sent(|| guard.set(&self.path, &self.mark.write(), None))?;
        Ok(())
    }
}

/// Makes a write for which there may be no connection yet: it is tried as long as the lock is held.
fn sent<T>(write: impl Fn() -> Pending<T, LockError>) -> Result<T, LockError> {
    loop {
        match write().wait() {
            Err(error) if error.code() == Code::NOT_CONNECTED => std::thread::sleep(PAUSE),
            written => return written,
        }
    }
}

fn time(millis: Option<i64>) -> SystemTime {
    let millis = millis.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0);
    UNIX_EPOCH + Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_known_yet_is_the_time_of_the_write() {
        let mut mark = Mark::new(7, "a\nb");
        let stat = |mtime| {
            let mut stat = Stat::default();
            stat.mtime = mtime;
            stat
        };
        let read = Mark::parse(&mark.write(), &stat(1_000)).unwrap();
        assert_eq!((read.started(), read.ended()), (time(Some(1_000)), None));
        assert_eq!((read.token, read.label.as_str()), (7, "a b"));
        // As a touch writes it.
        assert_eq!(Mark::parse(&read.write(), &stat(5_000)).unwrap(), read);
        mark.started = Some(1_000);
        mark.outcome = Some("0".to_owned());
        let read = Mark::parse(&mark.write(), &stat(9_000)).unwrap();
        assert_eq!((read.started(), read.ended()), (time(Some(1_000)), Some(time(Some(9_000)))));
        assert!(read.has_succeeded());
        assert_eq!(Mark::parse(&read.write(), &stat(12_000)).unwrap(), read);
    }

    #[test]
    fn what_others_have_written_is_no_mark() {
        for data in [&b""[..], b"hello", b"\xff", b"zklock-run/1\ntoken=x"] {
            assert_eq!(Mark::parse(data, &Stat::default()), None);
        }
    }
}
