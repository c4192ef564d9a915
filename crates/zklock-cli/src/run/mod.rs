//! `zklock run`: takes a lock, runs a command, releases the lock. The command never outlives the lock:
//!
//! - `zklock run` has the ZooKeeper session, and says again and again until when the lock is certainly held;
//! - the **supervisor** (`supervise/`) is the command's parent, and ends all that came of it by its own clock
//!   before that time is over: also when this process is frozen, or was killed;
//! - the supervisor may be killed or frozen, too. Then this process does what it should have done (`supervised.rs`).

mod acl;
mod connecting;
mod events;
mod hold;
mod notify;
pub mod options;
mod place;
mod signals;
mod stop;
mod supervised;
mod token_file;
mod waiting;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zklock::zookeeper::Acl;
use zklock::{Client, Guard, Interop, Lock, LockError, Store};

use crate::failure::{FAILED, Failure};
use crate::look::who::in_short;
use crate::mark::{self, Beginning, Mark, MarkedRun, NOT_STARTED};
use crate::output::say;
use crate::supervise::orders::Status;
use crate::text::rough;
use events::{Event, Events};
use hold::{Hold, Outcome, State, Times};
use options::RunOptions;
use place::Place;
use signals::Caught;
use stop::Stop;
use supervised::Supervised;
use waiting::Waiting;

/// The lock was lost or given up, and the command ended.
const LOST: u8 = 124;
/// A cron job is better off with losing nothing in a short outage, than others with taking over sooner.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// What is waited for the server's word at the end.
const GOODBYE: Duration = Duration::from_secs(2);

/// Between a crash of the command and its next start, and for another host to be faster.
const AFTER_CRASH: Duration = Duration::from_secs(1);

/// # Errors
/// zklock itself has failed.
pub fn run(options: RunOptions) -> Result<u8, Failure> {
    let status = begin(options)?;
    if let Status::Signaled(signal) = status {
        signals::die_of(signal);
    }
    Ok(status.code())
}

fn begin(options: RunOptions) -> Result<Status, Failure> {
    let place = place::of(&options)?;
    let starting = |error| Failure::new(format!("start a supervisor: {error}"));
    // If the parent ignores this signal, so does this process, and it cannot learn the status of the command. A handler
    // replaces that. `exec` resets it to the default, for the supervisor and the command.
    signal_hook::flag::register(signal_hook::consts::SIGCHLD, Arc::default()).map_err(starting)?;
    let events = Events::new().map_err(starting)?;
    let supervised =
        Supervised::start(&options.path, &options.argv(), events.sender()).map_err(starting)?;
    events.listen().map_err(starting)?;
    let begun = Instant::now();
    let mut run = Run {
        options,
        place,
        events,
        supervised,
        begun,
        store: None,
        is_released: false,
        asked_timeout: SESSION_TIMEOUT,
    };
    let ended = run.until_it_ends();
    if let Some(store) = &run.store {
        let closed = store.close();
        // A session without a claim blocks nobody, and `exit` waits until its end is under way.
        if !run.is_released || !matches!(ended, Ok(Status::Exited(_))) {
            let _ = closed.within(GOODBYE).wait();
        }
    }
    match ended {
        Ok(status) => Ok(status),
        Err(Stop::Signal(signal)) => Ok(Status::Signaled(signal)),
        Err(Stop::Conflict(why)) => {
            if !run.options.quiet {
                say(format_args!("{why}"));
            }
            Ok(Status::Exited(run.options.conflict_exit_code))
        }
        Err(Stop::Anew) => {
            // Removes the control group.
            drop(run);
            Err(Failure::new(format!("begin anew: {}", begin_anew())))
        }
        Err(Stop::Failure(failure)) => Err(failure),
    }
}

/// Executes this program again with the same arguments. A supervisor has to be started before other threads and
/// descriptors. Signals that come meanwhile end the new program.
fn begin_anew() -> std::io::Error {
    std::thread::sleep(AFTER_CRASH);
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    Command::new("/proc/self/exe").arg0(name).args(arguments).exec()
}

struct Run {
    options: RunOptions,
    place: Place,
    events: Events,
    supervised: Supervised,
    begun: Instant,
    store: Option<Store>,
    /// The servers have confirmed the last release.
    is_released: bool,
    asked_timeout: Duration,
}

/// Whether a run has a mark, and whether it is to be.
enum Marked {
    NotWanted,
    Run(MarkedRun),
    RanAlready,
    /// The lock was lost before.
    Lost,
}

impl Run {
    fn until_it_ends(&mut self) -> Result<Status, Stop> {
        let store = self.connect()?;
        self.store = Some(store.clone());
        self.times(&store)?;
        self.tell_of_timeout(&store);
        let lock = self.lock(&store).label(self.label());
        loop {
            let guard = self.acquire(&lock)?;
            self.is_released = false;
            // Of the session that holds it, which may be another than the last time.
            let times = self.times(&store)?;
            if !self.is_worth_beginning(&guard, times)? {
                continue;
            }
            let marked = match self.mark(&store, &guard)? {
                Marked::NotWanted => None,
                Marked::Run(marked) => Some(marked),
                Marked::RanAlready => {
                    self.release(guard);
                    return Ok(Status::Exited(0));
                }
                Marked::Lost => return Ok(self.lost_before_the_start()),
            };
            let is_ready = self.make_ready(&guard).and_then(|()| match marked {
                Some(_) => self.is_worth_beginning(&guard, times),
                None => Ok(true),
            });
            if !matches!(is_ready, Ok(true)) {
                if let Some(marked) = marked {
                    // If this write fails, the mark counts.
                    let _ = marked.end(&guard, NOT_STARTED);
                }
                is_ready?;
                return Ok(self.lost_before_the_start());
            }
            let session = store.client().and_then(Client::session);
            let session = session.map_or(0, |session| session.id());
            let mut hold = Hold {
                path: &self.options.path,
                store: self.place.name(),
                guard: &guard,
                events: &self.events,
                supervised: &self.supervised,
                times,
                kill_after: self.options.kill_after,
                quiet: self.options.quiet,
                state: State::default(),
            };
            let outcome = hold.run(session);
            let (loss, fate, is_started) = (hold.loss(), hold.fate(), hold.is_started());
            let State { asked_to_end, is_taken_over, .. } = hold.state;
            let is_done = !self.options.restart || asked_to_end.is_some();
            let mark_of = |outcome: &str| {
                if is_started { outcome.to_owned() } else { NOT_STARTED.to_owned() }
            };
            match outcome {
                Outcome::Ended(status) => {
                    self.finish(guard, marked, &mark_of(&status.code().to_string()));
                    match crash(status) {
                        Some(signal) if !is_done => {
                            self.tell(format_args!(
                                "the command was ended by signal {signal}: starting it again"
                            ));
                            self.meanwhile(|| std::thread::sleep(AFTER_CRASH))?;
                        }
                        _ => return Ok(as_asked(status, asked_to_end)),
                    }
                }
                Outcome::GaveWay => {
                    self.finish(guard, marked, &mark_of("gave way"));
                    if is_done {
                        return Ok(Status::Exited(LOST));
                    }
                }
                Outcome::Orphaned => {
                    self.finish(guard, marked, &mark_of("killed"));
                    if is_done {
                        return Ok(Status::Exited(FAILED));
                    }
                    return Err(Stop::Anew);
                }
                Outcome::Lost => {
                    if let Some(marked) = marked {
                        // Where that can't be written any more, its absence says as much.
                        let _ = marked.end(&guard, &mark_of("lost"));
                    }
                    self.tell(format_args!("lost: {loss}; {fate}"));
                    // If it is held yet, it can go; if not, that was said.
                    let _ = guard.release().wait();
                    if is_done {
                        return Ok(Status::Exited(LOST));
                    }
                    if is_taken_over {
                        return Err(Stop::Anew);
                    }
                }
            }
            // The next turn may be waited for as long as the first.
            self.begun = Instant::now();
        }
    }

    fn lost_before_the_start(&self) -> Status {
        self.tell(format_args!("lost before the command was started"));
        Status::Exited(LOST)
    }

    fn lock(&self, store: &Store) -> Lock {
        let RunOptions { path, shared, permits, universal, acl, .. } = &self.options;
        let lock = match permits {
            Some(permits) => store.semaphore(path, permits.of).permits(permits.wanted),
            None if *shared => store.read_write(path).read(),
            None if *universal => store.lock(path).interoperate(Interop::All),
            None => store.lock(path),
        };
        match acl {
            Some(acl) => lock.acl(acl.0.clone()),
            None => lock,
        }
    }

    fn label(&self) -> String {
        let RunOptions { label, shell, command, .. } = &self.options;
        let name = || Path::new(command.first()?).file_name();
        let label = label.as_ref().or(shell.as_ref()).cloned();
        label.unwrap_or_else(|| name().unwrap_or_default().to_string_lossy().into_owned())
    }

    fn times(&self, store: &Store) -> Result<Times, Stop> {
        let granted = store.session_timeout().unwrap_or(SESSION_TIMEOUT);
        let grace = self.options.grace.unwrap_or(granted / 10);
        let margin = granted / 20;
        // Over a connection that works, what is proven comes down to four tenths of it.
        if grace + margin > granted * 3 / 10 {
            return Err(Failure::new(format!(
                "--grace {}: takes a session timeout of at least four times that, and the servers have granted {}: \
                 ask for more with --session-timeout (they grant up to their maxSessionTimeout)",
                humantime::format_duration(grace),
                humantime::format_duration(granted)
            ))
            .into());
        }
        let tick = (granted / 40).clamp(Duration::from_millis(10), Duration::from_millis(500));
        Ok(Times { grace, margin, tick, usual: granted * 7 / 20 })
    }

    fn acquire(&self, lock: &Lock) -> Result<Guard, Stop> {
        let (acquired, limit) = (lock.clone(), self.limit());
        let no_wait = self.options.no_wait() || limit.is_some_and(|limit| limit.is_zero());
        let acquire = move || -> Result<Option<Guard>, LockError> {
            match limit {
                _ if no_wait => acquired.try_acquire().wait(),
                Some(limit) => acquired.acquire().within(limit).wait().map(Some),
                None => acquired.acquire().wait().map(Some),
            }
        };
        let _waiting = self.options.verbose.then(|| Waiting::begin(lock.clone()));
        let holder = || lock.holder().within(GOODBYE).wait().ok().flatten();
        let path = lock.path();
        match self.meanwhile(acquire)? {
            Ok(Some(guard)) => Ok(guard),
            Ok(None) => {
                let why = holder().map_or(
                    "nobody holds the lock now, but it could not be acquired: another has just released it, or the \
                     server was restarted and lets nobody in yet"
                        .to_owned(),
                    |holder| format!("held by {}", in_short(&holder)),
                );
                Err(Stop::Conflict(format!("{path}: not acquired: {why}")))
            }
            Err(LockError::TimedOut { ahead: Some(ahead), .. }) => {
                let why = holder().map_or_else(
                    || format!("behind {}", in_short(&ahead)),
                    |holder| format!("held by {}", in_short(&holder)),
                );
                let wait = humantime::format_duration(self.options.wait.unwrap_or_default());
                Err(Stop::Conflict(format!("{path}: not acquired within {wait}: {why}")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the lock is proven to be held for as long as it usually is, so that the command is not ended at
    /// once: an acquire needs less.
    fn is_worth_beginning(&self, guard: &Guard, times: Times) -> Result<bool, Stop> {
        // Signals that came before this command are not for it: those of the terminal have not reached it.
        while let Some(event) = self.events.next(Duration::ZERO) {
            self.hear(event)?;
        }
        let begun = Instant::now();
        while !guard.is_lost() {
            let is_long_ago = begun.elapsed() > times.usual;
            let enough = if is_long_ago { times.grace + times.margin * 2 } else { times.usual };
            if guard.remaining() > enough {
                return Ok(true);
            }
            if let Some(event) = self.events.next(Duration::from_millis(5)) {
                self.hear(event)?;
            }
        }
        Ok(false)
    }

    /// Tells others that the command is about to start.
    fn make_ready(&self, guard: &Guard) -> Result<(), Stop> {
        if let Some(file) = &self.options.token_file {
            token_file::write(file, guard.fencing_token())?;
        }
        if self.options.notify {
            notify::ready()?;
        }
        Ok(())
    }

    /// Does the work, and hears of signals meanwhile.
    fn meanwhile<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        self.events.meanwhile(work, |event| self.hear(event))
    }

    /// What happens while there is no command.
    fn hear(&self, event: Event) -> Result<(), Stop> {
        use rustix::process::{Signal, getpid, kill_process};
        match event {
            Event::Signal(Caught { signal, .. }) => {
                let is = |other: Signal| signal == other.as_raw();
                if [Signal::TSTP, Signal::TTIN, Signal::TTOU].into_iter().any(is) {
                    let _ = kill_process(getpid(), Signal::STOP);
                }
                match [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].into_iter().any(is) {
                    true => Err(Stop::Signal(signal)),
                    false => Ok(()),
                }
            }
            Event::NoSupervisor => {
                self.supervised.take_over(|_| {});
                if self.options.restart {
                    return Err(Stop::Anew);
                }
                Err(Failure::new("the supervisor was killed").into())
            }
            Event::Tick => {
                self.supervised.look_after_others();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Leaves the mark that a run begins, if one is wanted.
    fn mark(&self, store: &Store, guard: &Guard) -> Result<Marked, Stop> {
        let RunOptions { path, once_per, retry_failed, quiet, .. } = &self.options;
        let (Some(period), Some(client)) = (*once_per, store.client()) else {
            return Ok(Marked::NotWanted);
        };
        let counts = |mark: &Mark| !retry_failed || mark.has_succeeded();
        let acl = self.options.acl.as_ref().map_or_else(Acl::open, |acl| acl.0.clone());
        let pause = || self.meanwhile(|| std::thread::sleep(mark::PAUSE));
        let whose = (path.as_str(), &*self.label());
        match MarkedRun::begin((client, guard), whose, acl, period, counts, pause) {
            Ok(Beginning::Run(marked)) => Ok(Marked::Run(marked)),
            Ok(Beginning::RanAlready(mark, age)) => {
                if !quiet {
                    say(format_args!(
                        "{path}: not run: {} pid {} ({}) has run it {} ago; next in {}",
                        mark.host,
                        mark.pid,
                        mark.label,
                        rough(age),
                        rough(period.saturating_sub(age))
                    ));
                }
                Ok(Marked::RanAlready)
            }
            Err(Stop::Failure(_)) if guard.is_lost() => Ok(Marked::Lost),
            Err(stop) => Err(stop),
        }
    }

    /// Nothing of the command is alive.
    fn finish(&mut self, guard: Guard, marked: Option<MarkedRun>, outcome: &str) {
        if let Some(Err(failure)) = marked.map(|marked| marked.end(&guard, outcome)) {
            say(format_args!("how it ended could not be written: {failure}"));
        }
        self.release(guard);
    }

    fn tell(&self, what: std::fmt::Arguments) {
        say(format_args!("{}: {what}", self.options.path));
    }

    /// Says where the servers have granted another session timeout than the user asked for.
    fn tell_of_timeout(&self, store: &Store) {
        let RunOptions { session_timeout, verbose, quiet, .. } = &self.options;
        let granted = store.session_timeout().unwrap_or(self.asked_timeout);
        if granted == self.asked_timeout || *quiet || (session_timeout.is_none() && !verbose) {
            return;
        }
        let limit = match granted < self.asked_timeout {
            true => "maxSessionTimeout",
            false => "minSessionTimeout",
        };
        let [asked, granted] = [self.asked_timeout, granted].map(humantime::format_duration);
        say(format_args!(
            "asked for {asked}, got {granted} ({limit}): after a crash, locks stay taken for {granted}"
        ));
    }

    fn release(&mut self, guard: Guard) {
        let released = guard.release().wait();
        self.is_released = released.is_ok();
        if let Err(error) = released {
            say(format_args!("{error}"));
        }
    }
}

/// The signal of which a command has died that neither ended by itself nor was asked to.
fn crash(status: Status) -> Option<i32> {
    use rustix::process::Signal;
    let asking = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::PIPE];
    match status {
        Status::Signaled(signal) if !asking.iter().any(|ask| ask.as_raw() == signal) => {
            Some(signal)
        }
        _ => None,
    }
}

/// A shell that was asked to end says by a status that its command has died of that signal.
fn as_asked(status: Status, asked_to_end: Option<i32>) -> Status {
    match asked_to_end.map(Status::Signaled) {
        Some(asked) if asked.code() == status.code() => asked,
        _ => status,
    }
}
