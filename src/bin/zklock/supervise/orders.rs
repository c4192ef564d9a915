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
    /// Let a stopped command go on; `terminal`: in the foreground of its terminal. `time` counts them.
    Resume { time: u32, terminal: bool },
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
    pub terminal: bool,
    pub token: i64,
    pub session: i64,
}

/// From the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command was stopped by that signal, after it was resumed so often.
    Stopped { resumed: u32, signal: i32 },
    /// The command has ended, and others that it has left behind are being ended.
    LeftBehind(String),
    /// SIGTERM was sent, because the lock is about to be lost.
    Terminated,
    /// SIGKILL was sent.
    Killed,
    /// These live in spite of it.
    Unkillable(String),
    /// Nothing is alive any more that came of the command; the status that it has ended with.
    Gone(u8),
}

impl Order {
    pub fn write(&self) -> String {
        match self {
            Order::Start(start) => format!(
                "start {} {} {} {} {} {}",
                start.until.as_nanos(),
                start.grace.as_nanos(),
                start.margin.as_nanos(),
                u8::from(start.terminal),
                start.token,
                start.session
            ),
            Order::Until(until) => format!("until {}", until.as_nanos()),
            Order::Signal(signal) => format!("signal {signal}"),
            Order::Resume { time, terminal } => format!("resume {time} {}", u8::from(*terminal)),
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
                terminal: words.next()? == "1",
                token: words.next()?.parse().ok()?,
                session: words.next()?.parse().ok()?,
            }),
            "until" => Order::Until(nanos(words.next())?),
            "signal" => Order::Signal(words.next()?.parse().ok()?),
            "resume" => {
                let time = words.next()?.parse().ok()?;
                Order::Resume { time, terminal: words.next()? == "1" }
            }
            "end" => Order::End,
            "kill" => Order::Kill,
            _ => return None,
        })
    }
}

impl Report {
    pub fn write(&self) -> String {
        match self {
            Report::Stopped { resumed, signal } => format!("stopped {resumed} {signal}"),
            Report::LeftBehind(who) => format!("left {who}"),
            Report::Terminated => "terminated ".to_owned(),
            Report::Killed => "killed ".to_owned(),
            Report::Unkillable(who) => format!("unkillable {who}"),
            Report::Gone(code) => format!("gone {code}"),
        }
    }

    pub fn read(text: &str) -> Option<Report> {
        let (what, rest) = text.split_once(' ')?;
        Some(match what {
            "stopped" => {
                let (resumed, signal) = rest.split_once(' ')?;
                Report::Stopped { resumed: resumed.parse().ok()?, signal: signal.parse().ok()? }
            }
            "left" => Report::LeftBehind(rest.to_owned()),
            "terminated" => Report::Terminated,
            "killed" => Report::Killed,
            "unkillable" => Report::Unkillable(rest.to_owned()),
            "gone" => Report::Gone(rest.parse().ok()?),
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
            terminal: true,
            token: i64::MAX,
            session: -2,
        };
        let resume = Order::Resume { time: 3, terminal: false };
        let until = Order::Until(Duration::MAX.min(Duration::from_secs(9)));
        for order in
            [Order::Start(start), until, Order::Signal(15), resume, Order::End, Order::Kill]
        {
            assert_eq!(Order::read(&order.write()), Some(order));
        }
        let stopped = Report::Stopped { resumed: 2, signal: 20 };
        let (left, stuck) =
            (Report::LeftBehind("1 (a b)".into()), Report::Unkillable("2 (c)".into()));
        let others = [Report::Terminated, Report::Killed, Report::Gone(137)];
        for report in [stopped, left, stuck].into_iter().chain(others) {
            assert_eq!(Report::read(&report.write()), Some(report));
        }
        assert_eq!((Order::read("until x"), Report::read("gone")), (None, None));
    }
}
