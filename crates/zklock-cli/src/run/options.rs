//! The arguments of `zklock run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::acl::AclArgument;
use crate::servers::Servers;
use crate::text::parse_duration;

#[derive(Args, Debug)]
#[command(after_long_help = MORE, after_help = "See --help for guarantees, limits, signals, exit statuses and examples")]
pub struct RunOptions {
    /// The lock's path. Programs that name the same path share one lock
    #[arg(value_parser = lock_path)]
    pub path: String,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required_unless_present = "shell")]
    pub command: Vec<OsString>,

    /// Run this shell line with /bin/sh instead of a command
    #[arg(short = 'c', long = "command", value_name = "LINE", conflicts_with = "command")]
    #[arg(help_heading = "Command")]
    pub shell: Option<String>,

    /// Share the lock with other --shared runs. They wait only for exclusive ones
    #[arg(short, long, help_heading = "Lock")]
    pub shared: bool,

    /// The default. `flock` has the option, too
    #[arg(short = 'x', long, hide = true, short_alias = 'e', conflicts_with_all = ["shared", "permits"])]
    exclusive: bool,

    /// Take N of the M permits at PATH. With 1/4, up to four run at a time. A limit that the path already has
    /// replaces M
    #[arg(long, value_name = "N/M", value_parser = permits, help_heading = "Lock")]
    #[arg(conflicts_with = "shared")]
    pub permits: Option<Permits>,

    /// Exclude the locks of all other libraries on this path. This includes kazoo with its defaults, which needs
    /// a second znode. Runs with and without this option exclude each other
    #[arg(long, help_heading = "Lock")]
    #[arg(conflicts_with_all = ["shared", "permits"])]
    pub universal: bool,

    /// Give up after this time, such as 500ms, 10s or 2h. A plain number is seconds, and 0 is --no-wait
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Lock")]
    #[arg(alias = "timeout")]
    pub wait: Option<Duration>,

    /// Give up at once if the lock is held or others wait for it
    #[arg(short, long, conflicts_with = "wait", help_heading = "Lock", alias = "nonblock")]
    pub no_wait: bool,

    /// The exit status after giving up
    #[arg(short = 'E', long, value_name = "STATUS", default_value = "1", help_heading = "Lock")]
    pub conflict_exit_code: u8,

    /// The permissions of the lock's znodes: open, creator (clients with the same identity as this one), read-only, or
    /// SCHEME:ID:PERMISSIONS such as sasl:bob:cdrwa. Separate several with commas [default: open]
    #[arg(long, value_name = "ACL", value_parser = super::acl::parse, help_heading = "Lock")]
    pub acl: Option<AclArgument>,

    /// The holder's name, which others see [default: the command's name]
    #[arg(long, value_name = "TEXT", help_heading = "Lock")]
    pub label: Option<String>,

    /// How long the lock stays taken after a crash of this machine. Losing the connection for a quarter of this time
    /// costs the lock: with a shorter timeout, others wait less and losses are more likely [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Lock")]
    pub session_timeout: Option<Duration>,

    /// The time from SIGTERM to SIGKILL when the lock is about to be lost, or when the command has ended and left
    /// processes behind [default: a tenth of the session timeout]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Command")]
    pub grace: Option<Duration>,

    /// Send SIGKILL this long after passing SIGTERM on to the command [default: never; the lock stays held until the
    /// command ends]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Command")]
    pub kill_after: Option<Duration>,

    /// Run the command again after a lost lock, after giving way, and after a crash, each time with the lock: a service
    /// with one active copy. A crash is the death by any signal but INT, TERM, HUP, QUIT and PIPE. A failure of zklock
    /// itself, such as a refused password, ends it: have the service manager start it again
    #[arg(long, help_heading = "Command")]
    pub restart: bool,

    /// Skip the run if the command was started less than this time ago on any host, such as 20h
    ///
    /// With a lock alone, five hosts that start at 2:00 run the job one after the other. This option records each run at
    /// PATH.last: who, when, and how it ended (see `zklock last`). A run counts from its start, however it ends.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Command")]
    #[arg(conflicts_with_all = ["restart", "shared", "permits"])]
    pub once_per: Option<Duration>,

    /// Count only earlier runs that ended with status 0
    #[arg(long, requires = "once_per", help_heading = "Command")]
    pub retry_failed: bool,

    /// Write the fencing token to this file before the command starts
    #[arg(long, value_name = "FILE", help_heading = "Command")]
    pub token_file: Option<PathBuf>,

    /// Send READY=1 to systemd once the lock is held (Type=notify)
    #[arg(long, help_heading = "Command")]
    pub notify: bool,

    /// Raise the tokens of --store above this one, for all its clients. Give the largest token of the store that you used
    /// before. ZooKeeper's tokens cannot be raised
    #[arg(long, value_name = "TOKEN", help_heading = "Servers")]
    pub tokens_above: Option<i64>,

    /// Show which holder it waits for
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Show only errors
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub servers: Servers,
}

/// Some of a number of permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits {
    pub wanted: u32,
    pub of: u32,
}

impl RunOptions {
    /// The command with its arguments.
    pub fn argv(&self) -> Vec<OsString> {
        match &self.shell {
            Some(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            None => self.command.clone(),
        }
    }

    pub fn no_wait(&self) -> bool {
        self.no_wait || self.wait == Some(Duration::ZERO)
    }
}

fn permits(text: &str) -> Result<Permits, String> {
    let read = || {
        let (wanted, of) = text.split_once('/')?;
        Some(Permits { wanted: wanted.parse().ok()?, of: of.parse().ok()? })
    };
    match read() {
        Some(permits) if 0 < permits.wanted && permits.wanted <= permits.of => Ok(permits),
        _ => Err("some of a number of permits, such as 1/4".to_owned()),
    }
}

/// The library checks the rest; here is what would otherwise be told of a path that the user never wrote.
pub fn lock_path(text: &str) -> Result<String, String> {
    match text {
        _ if !text.starts_with('/') => Err("a path starts with /, as in /locks/report".to_owned()),
        _ if text.ends_with('/') && text != "/" => {
            Err("a lock's path does not end with /".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

const MORE: &str = "\
In the command's environment:
  ZKLOCK_TOKEN    the fencing token, which grows with every acquire. A store
                  that rejects older tokens is safe from late writes
  ZKLOCK_PATH     the lock's path
  ZKLOCK_SESSION  the ZooKeeper session that holds the lock

Guarantees:
  The command never outlives the lock. A supervisor watches the time, even while
  zklock is frozen:
  - If no server confirms the lock in time, all processes of the command get
    SIGTERM, and SIGKILL before the lock can pass to another holder. This
    includes processes in sessions of their own. Where zklock may create a
    control group (cgroup v2), the kernel kills all of them at once.
  - `kill -9` of zklock ends the command, with the grace time. `kill -9` of the
    supervisor kills it.
  - The lock is released when no process of the command is left. Processes that
    it leaves in the background are ended.
  - zklock refuses to start if /proc belongs to another pid namespace.

Limits:
  These may outlive the lock. Work that must be safe even then has to check
  the fencing token.
  - Processes that others start for the command: by systemd-run, at or docker.
  - A command that runs as another user, such as with sudo, unless zklock runs
    as root.
  - Without a control group: a command that never stops starting processes, on a
    machine too busy to find them all in time.
  - Processes of the command if zklock and the supervisor are killed at the
    same time, or one is stopped and then the other killed. With systemd, set
    KillMode=mixed.
  - Processes of a machine or container that stood still as a whole may run for
    a moment before they are killed.

Signals:
  INT, TERM, HUP, QUIT, USR1, USR2 and WINCH are passed on to the command's
  process group. On a terminal the command shares zklock's process group, so
  keys reach both, and both ends of a pipe may read from the terminal.
  TERM is followed by KILL only with --kill-after.
  While Ctrl-Z stops zklock, the lock is not renewed: a command that stays
  stopped loses it and is killed.

Exit status:
  That of the command. If a signal ended the command, zklock ends by the same
  signal (a shell shows 128+N), so that a script stops at Ctrl-C.
  0    also, with --once-per, if the job ran already
  1    the lock was not acquired in time (-E chooses another status)
  124  the lock was lost, or given up because of `zklock ask`
  125  zklock failed, or an argument is wrong
  126  the command cannot be run
  127  there is no such command

Examples:
  zklock run /locks/report -- make report
  zklock run --wait 10s /locks/deploy -- ./deploy.sh
  zklock run /locks/report -c 'make report | mail ops'
  # on this machine alone, without servers
  zklock run --store sqlite:/var/lock/jobs.db /locks/report -- make report
  # four at a time in the whole cluster
  zklock run --permits 1/4 /limits/transfers -- rsync -a /srv/ backup:/srv/
  # skipped while another runs
  zklock run --no-wait -E 0 /locks/sync -- rsync -a /srv/ backup:/srv/
  # nightly, on one of five hosts
  zklock run --once-per 20h /locks/nightly -- ./nightly.sh
  # one active copy of a service
  zklock run --restart /services/billing -- ./billing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_some_of_a_number() {
        assert_eq!(permits("3/10"), Ok(Permits { wanted: 3, of: 10 }));
        for bad in ["", "3", "0/4", "5/4", "1/x", "-1/4", "1/4/2"] {
            assert!(permits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_locks_path_is_absolute() {
        assert_eq!(lock_path("/a/b"), Ok("/a/b".to_owned()));
        assert!(lock_path("a").is_err() && lock_path("/a/").is_err() && lock_path("/").is_ok());
    }
}
