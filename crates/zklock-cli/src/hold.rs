//! `zklock hold`: takes a lock for a script, and holds it until standard input ends or a signal comes.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use zklock::Store;
use zklock::{Contender, Guard, Lock, LockError, LostReason};

use crate::failure::{FAILED, Failure};
use crate::interrupts::when_asked_to_end;
use crate::look::who::in_short;
use crate::output::{expect_written, say, write};
use crate::run::options::lock_path;
use crate::servers::{Place, Servers};
use crate::text::{one_line, parse_duration};

#[derive(Args, Clone, Debug)]
#[command(after_help = MORE)]
pub struct HoldOptions {
    /// The lock's path
    #[arg(value_parser = lock_path)]
    path: String,

    /// Share the lock with other --shared holders
    #[arg(short, long)]
    shared: bool,

    /// Give up after this time, such as 500ms, 10s or 2h. A plain number is seconds, and 0 is --no-wait
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, alias = "timeout")]
    wait: Option<Duration>,

    /// Give up at once if the lock is held or others wait for it
    #[arg(short, long, conflicts_with = "wait", alias = "nonblock")]
    no_wait: bool,

    /// The holder's name, which others see
    #[arg(long, value_name = "TEXT", default_value = "zklock hold")]
    label: String,

    /// How long the lock stays taken after a crash of this machine [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    session_timeout: Option<Duration>,

    #[command(flatten)]
    servers: Servers,
}

const MORE: &str = "\
Output:
  Once the lock is held, a line with the path and the fencing token.

Guarantees:
  The lock is released when standard input ends, when a signal comes, and when
  this program dies.

Limits:
  If the lock is lost, this program ends with status 124, and the script has to
  notice. `zklock run` ends its command before another can hold the lock.

Signals:
  SIGINT, SIGTERM, SIGHUP  release the lock and end it

Exit status:
  0    the lock was held, and was released
  1    the lock was not acquired in time, or before input or a signal ended it
  124  the lock was lost, or given up because of `zklock ask`
  125  zklock failed: the servers cannot be reached, the release was not
       confirmed, or an argument is wrong

Examples (bash):
  coproc zklock hold /locks/report
  read -r path token <&\"${COPROC[0]}\"
  make report
  exec {COPROC[1]}>&-                  # releases the lock";

const NOT_IN_TIME: u8 = 1;
const LOST: u8 = 124;
/// How long the servers' word at the end is waited for.
const GOODBYE: Duration = Duration::from_secs(2);

enum Event {
    /// The lock, with its store.
    Connected(Result<(Store, Lock), Failure>),
    Acquired(Result<Option<Guard>, LockError>),
    /// The input is at its end, or a signal came.
    End,
    Lost(LostReason),
    /// To release the lock, and why.
    Asked(String),
}

fn start(work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| Failure::new(format!("start a thread: {error}")))
}

impl HoldOptions {
    fn lock(&self, store: &Store) -> Lock {
        let lock = match self.shared {
            true => store.read_write(&self.path).read(),
            false => store.lock(&self.path),
        };
        lock.label(self.label.clone())
    }

    fn say_not_acquired(&self, when: &str, ahead: Option<&Contender>, why: Option<String>) {
        let ahead = ahead.map(|ahead| match ahead.held_since {
            Some(_) => format!("held by {}", in_short(ahead)),
            None => format!("behind {}", in_short(ahead)),
        });
        let why = why.or(ahead).unwrap_or_else(|| "no server has said who is ahead".to_owned());
        say(format_args!("{}: not acquired {when}: {why}", self.path));
    }

    fn in_time(&self) -> String {
        format!("within {}", humantime::format_duration(self.wait.unwrap_or_default()))
    }

    fn connect(&self, place: Place, events: Sender<Event>) -> Result<(), Failure> {
        let options = self.clone();
        start(move || {
            let connected = options.servers.connect_for(place, options.session_timeout);
            let lock = |store| {
                let lock = options.lock(&store);
                (store, lock)
            };
            let _ = events.send(Event::Connected(connected.map(lock)));
        })
    }

    fn acquire(
        &self,
        lock: Lock,
        limit: Option<Duration>,
        events: Sender<Event>,
    ) -> Result<(), Failure> {
        let no_wait = self.no_wait || self.wait.is_some_and(|wait| wait.is_zero());
        let wait = if no_wait { Some(Duration::ZERO) } else { limit };
        start(move || {
            let acquired = match wait {
                Some(Duration::ZERO) => lock.try_acquire().wait(),
                Some(limit) => lock.acquire().within(limit).wait().map(Some),
                None => lock.acquire().wait().map(Some),
            };
            let _ = events.send(Event::Acquired(acquired));
        })
    }
}

/// # Errors
/// The store can't be reached, or refuses.
pub fn hold(options: &HoldOptions) -> Result<u8, Failure> {
    let (events, next) = channel();
    let signal = events.clone();
    when_asked_to_end(move || drop(signal.send(Event::End)))
        .map_err(|error| Failure::new(format!("listen for signals: {error}")))?;
    let input = events.clone();
    start(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = input.send(Event::End);
    })?;
    let begun = Instant::now();
    options.connect(options.servers.place()?, events.clone())?;
    let (mut connected, mut held, mut written) = (None, None, Ok(()));
    let status = loop {
        let limit = options.wait.filter(|wait| connected.is_none() && !wait.is_zero());
        let event = match limit {
            Some(limit) => next.recv_timeout(limit.saturating_sub(begun.elapsed())),
            None => next.recv().map_err(RecvTimeoutError::from),
        };
        match event {
            Ok(Event::Connected(Ok((store, lock)))) => {
                let limit = options.wait.map(|wait| wait.saturating_sub(begun.elapsed()));
                options.acquire(lock.clone(), limit, events.clone())?;
                connected = Some((store, lock));
            }
            Ok(Event::Connected(Err(failure))) => return Err(failure),
            Err(RecvTimeoutError::Timeout) => {
                let why = "no server has accepted the connection yet".to_owned();
                options.say_not_acquired(&options.in_time(), None, Some(why));
                break NOT_IN_TIME;
            }
            Ok(Event::Acquired(Ok(Some(guard)))) => {
                written = write(format_args!("{} {}\n", options.path, guard.fencing_token()));
                let (lost, losses) = (guard.lost(), events.clone());
                start(move || drop(losses.send(Event::Lost(lost.wait()))))?;
                let (mut requests, asked) = (guard.release_requests(), events.clone());
                start(move || {
                    drop(requests.wait().map(|reason| asked.send(Event::Asked(reason))))
                })?;
                held = Some(guard);
                if written.is_err() {
                    break FAILED;
                }
            }
            Ok(Event::Acquired(Ok(None))) => {
                let holder = connected
                    .as_ref()
                    .and_then(|(_, lock)| lock.holder().within(GOODBYE).wait().ok().flatten());
                options.say_not_acquired("at once", holder.as_ref(), None);
                break NOT_IN_TIME;
            }
            Ok(Event::Acquired(Err(LockError::TimedOut { ahead, why, .. }))) => {
                options.say_not_acquired(&options.in_time(), ahead.as_deref(), why);
                break NOT_IN_TIME;
            }
            Ok(Event::Acquired(Err(error))) => return Err(error.into()),
            Ok(Event::Lost(why)) => {
                say(format_args!("{}: lost: {why}", options.path));
                break LOST;
            }
            Ok(Event::Asked(why)) => {
                let why = if why.is_empty() { why } else { format!(" ({})", one_line(&why)) };
                say(format_args!("{}: asked to give way{why}", options.path));
                break LOST;
            }
            Ok(Event::End) | Err(_) if held.is_some() => break 0,
            Ok(Event::End) | Err(_) => {
                say(format_args!(
                    "{}: not acquired before the input ended or a signal came",
                    options.path
                ));
                break NOT_IN_TIME;
            }
        }
    };
    let released = held.map_or(Ok(()), |guard| guard.release().within(GOODBYE).wait());
    let _ = connected.map(|(store, _)| store.close().within(GOODBYE).wait());
    expect_written(written);
    match released {
        Err(LockError::Lost { reason, .. }) if status != LOST => {
            say(format_args!("{}: lost: {reason}", options.path));
            Ok(LOST)
        }
        Err(error) if status != LOST => Err(error.into()),
        _ => Ok(status),
    }
}
