//! What `zklock run` and its supervisor say to each other. Points in time are of the clock that both have: since
//! the machine was booted.

use std::time::Duration;

/// To the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lock is held: start the command.
    Start(Start),
    /// The lock is certainly held until then.
    Until(Duration),
    /// Send that signal to the command's process group.
    Signal(i32),
    /// Stop `zklock run`, as its command was.
    Stop,
    /// Let a stopped command go on. `time` counts them.
    Resume { time: u32 },
    /// SIGKILL at that time, unless all has ended by then.
    KillAt(Duration),
    /// The lock is to be given up: SIGTERM, and SIGKILL after the grace.
    End,
    /// The lock is lost: kill.
    Kill,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub until: Duration,
    /// From SIGTERM to SIGKILL, at the most.
    pub grace: Duration,
    /// How long before the lock is lost all have to be killed.
    pub margin: Duration,
    pub token: i64,
    pub session: i64,
}

/// From the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command was started.
    Started,
    /// There is no such command, or it can't be run.
    NotStarted,
    /// The command was stopped by that signal, after it was resumed so often.
    Stopped { resumed: u32, signal: i32 },
    /// The command has ended, and others that it has left behind are being ended.
    LeftBehind(String),
    /// SIGTERM was sent, because the lock is about to be lost.
    Terminated,
    /// SIGKILL was sent; `for_loss`: because the lock is about to be lost.
    Killed { for_loss: bool },
    /// These live in spite of it.
    Unkillable(String),
    /// Nothing is alive any more that came of the command; how it has ended.
    Gone(Status),
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Exited(u8),
    Signaled(i32),
}

impl Status {
    /// The exit status, as shells have it.
    pub fn code(self) -> u8 {
        match self {
            Status::Exited(code) => code,
            Status::Signaled(signal) => 128u8.wrapping_add(signal as u8),
        }
    }
}

impl Order {
    pub fn write(&self) -> String {
        match self {
            Order::Start(start) => format!(
                "start {} {} {} {} {}",
                start.until.as_nanos(),
                start.grace.as_nanos(),
                start.margin.as_nanos(),
                start.token,
                start.session
            ),
            Order::Until(until) => format!("until {}", until.as_nanos()),
            Order::Signal(signal) => format!("signal {signal}"),
            Order::Stop => "stop".to_owned(),
            Order::Resume { time } => format!("resume {time}"),
            Order::KillAt(at) => format!("kill-at {}", at.as_nanos()),
            Order::End => "end".to_owned(),
            Order::Kill => "kill".to_owned(),
        }
    }

    pub fn read(text: &str) -> Option<Order> {
        let mut words = text.split(' ');
        Some(match words.next()? {
            "start" => Order::Start(Start {
                until: nanos(words.next())?,
                grace: nanos(words.next())?,
                margin: nanos(words.next())?,
                token: words.next()?.parse().ok()?,
                session: words.next()?.parse().ok()?,
            }),
            "until" => Order::Until(nanos(words.next())?),
            "signal" => Order::Signal(words.next()?.parse().ok()?),
            "stop" => Order::Stop,
            "resume" => Order::Resume { time: words.next()?.parse().ok()? },
            "kill-at" => Order::KillAt(nanos(words.next())?),
            "end" => Order::End,
            "kill" => Order::Kill,
            _ => return None,
        })
    }
}

impl Report {
    pub fn write(&self) -> String {
        match self {
            Report::Started => "started ".to_owned(),
            Report::NotStarted => "refused ".to_owned(),
            Report::Stopped { resumed, signal } => format!("stopped {resumed} {signal}"),
            Report::LeftBehind(who) => format!("left {who}"),
            Report::Terminated => "terminated ".to_owned(),
            Report::Killed { for_loss } => format!("killed {}", u8::from(*for_loss)),
            Report::Unkillable(who) => format!("unkillable {who}"),
            Report::Gone(Status::Exited(code)) => format!("exited {code}"),
            Report::Gone(Status::Signaled(signal)) => format!("signaled {signal}"),
        }
    }

    pub fn read(text: &str) -> Option<Report> {
        let (what, rest) = text.split_once(' ')?;
        Some(match what {
            "started" => Report::Started,
            "refused" => Report::NotStarted,
            "stopped" => {
                let (resumed, signal) = rest.split_once(' ')?;
                Report::Stopped { resumed: resumed.parse().ok()?, signal: signal.parse().ok()? }
            }
            "left" => Report::LeftBehind(rest.to_owned()),
            "terminated" => Report::Terminated,
            "killed" => Report::Killed { for_loss: rest == "1" },
            "unkillable" => Report::Unkillable(rest.to_owned()),
            "exited" => Report::Gone(Status::Exited(rest.parse().ok()?)),
            "signaled" => Report::Gone(Status::Signaled(rest.parse().ok()?)),
            _ => return None,
        })
    }
}

fn nanos(word: Option<&str>) -> Option<Duration> {
    word?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let start = Start {
            until: Duration::from_nanos(1_234_567_890_123),
            grace: Duration::from_secs(3),
            margin: Duration::from_millis(250),
            token: i64::MAX,
            session: -2,
        };
        let resume = Order::Resume { time: 3 };
        let until = Order::Until(Duration::MAX.min(Duration::from_secs(9)));
        let kill_at = Order::KillAt(Duration::from_secs(8));
        let plain = [Order::Signal(15), Order::Stop, Order::End, Order::Kill];
        for order in [Order::Start(start), until, resume, kill_at].into_iter().chain(plain) {
            assert_eq!(Order::read(&order.write()), Some(order));
        }
        let stopped = Report::Stopped { resumed: 2, signal: 20 };
        let (left, stuck) =
            (Report::LeftBehind("1 (a b)".into()), Report::Unkillable("2 (c)".into()));
        let gone = [Status::Exited(137), Status::Signaled(9)].map(Report::Gone);
        let killed = [true, false].map(|for_loss| Report::Killed { for_loss });
        let others = [Report::Started, Report::Terminated].into_iter().chain(killed).chain(gone);
        for report in [stopped, left, stuck].into_iter().chain(others) {
            assert_eq!(Report::read(&report.write()), Some(report));
        }
        assert_eq!((Order::read("until x"), Report::read("exited")), (None, None));
    }
}
