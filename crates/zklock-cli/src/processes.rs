//! The processes below another, whatever group or session they have put themselves into.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, wait,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    pub group: i32,
    parent: i32,
    state: char,
    name: String,
}

impl Process {
    /// Whether it executes nothing any more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether a signal has stopped it.
    pub fn is_stopped(&self) -> bool {
        self.state == 'T'
    }

    /// Sends it a signal, if it is still the process that was seen.
    ///
    /// # Errors
    /// `EPERM` for one that runs as another user.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let sent = match pidfd_open(self.pid, PidfdFlags::empty()) {
            // Its number may be another's by now: looked at again, once it is held fast.
            Ok(fd) => match Process::read(self.pid) {
                Some(now) if now.parent == self.parent || now.name == self.name => {
                    pidfd_send_signal(fd, signal)
                }
                _ => Ok(()),
            },
            Err(Errno::SRCH) => Ok(()),
            // A kernel, or a container, without them.
            Err(_) => kill_process(self.pid, signal),
        };
        match sent {
            Err(Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    pub fn read(pid: Pid) -> Option<Process> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        parse(&fs::read(path).ok()?)
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.pid.as_raw_nonzero(), self.name)?;
        match self.state {
            'D' => f.write_str(", in an uninterruptible wait)"),
            _ => f.write_str(")"),
        }
    }
}

/// All processes below `root`, nearest first. Leaves out the children in `but`, and the processes below them.
pub fn below(root: Pid, but: &[Pid]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    // All numbers first: read one by one, the listing would go on with what is started meanwhile, which may be faster.
    let pids: Vec<Pid> = entries.filter_map(pid).collect();
    for process in pids.into_iter().filter_map(Process::read) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&root.as_raw_nonzero().get()).unwrap_or_default();
    found.retain(|child| !but.contains(&child.pid));
    let mut at = 0;
    while at < found.len() {
        let pid = found[at].pid.as_raw_nonzero().get();
        found.extend(children.remove(&pid).unwrap_or_default());
        at += 1;
    }
    found
}

/// Kills the children of this process, and theirs, from the top: one that was killed starts no other. In a subreaper that
/// takes a fraction of the time of [`below`], in which a program may start others and end.
pub fn kill_children(but: &[Pid]) {
    for child in children(getpid()).into_iter().filter(|child| !but.contains(child)) {
        // Only this process reaps them, and does so later: the number is still theirs.
        let _ = kill_process(child, Signal::KILL);
        let mut left = children(child);
        while let Some(pid) = left.pop() {
            if let Some(process) = Process::read(pid) {
                let _ = process.signal(Signal::KILL);
                left.extend(children(pid));
            }
        }
    }
}

/// The children of a process. Also empty if the kernel does not list them.
pub fn children(parent: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    for thread in threads.into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = children.split_whitespace();
        found.extend(pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    found
}

/// Whether `/proc` shows this process and its children by their own ids. The `/proc` of another pid namespace does not,
/// and would show other processes below this one.
pub fn are_seen() -> bool {
    // Children may start in another namespace than this process (`unshare --pid` without `--fork`).
    let namespace = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
    let is_for_children = Path::new("/proc/self/ns/pid_for_children").symlink_metadata().is_ok();
    if is_for_children && namespace("pid") != namespace("pid_for_children") {
        return false;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = getpid().as_raw_nonzero().to_string();
    // A process has an id in each namespace from that of /proc to its own.
    let ids = ["NSpid:", "Pid:"]
        .iter()
        .find_map(|name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim));
    ids == Some(own.as_str())
}

/// `PID (NAME) STATE PARENT GROUP ...`, where the name may be anything.
fn parse(stat: &[u8]) -> Option<Process> {
    let text = String::from_utf8_lossy(stat);
    let (before, after) = text.rsplit_once(')')?;
    let (pid, name) = before.split_once(" (")?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let name = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(Process { pid: Pid::from_raw(pid.parse().ok()?)?, parent, group, state, name })
}

/// What a child has come to.
pub enum Change {
    Child(Pid, WaitStatus),
    /// Some live, and there is nothing new of them.
    Nothing,
    /// There are none. Of a subreaper: nothing that ever came of its children is alive.
    NoChildren,
}

/// Looks for the next change of a child, and reaps it.
pub fn next_change() -> Change {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) => return Change::Child(pid, status),
            Ok(None) => return Change::Nothing,
            Err(Errno::INTR) => {}
            Err(_) => return Change::NoChildren,
        }
    }
}

/// Names a few of them.
pub fn list(processes: &[Process]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = processes.iter().take(SHOWN).map(Process::to_string).collect();
    if processes.len() > SHOWN {
        text.push(format!("{} more", processes.len() - SHOWN));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_fields_behind_it() {
        let process = parse(b"71 (a) R 1 (\n) S 7 9 9 0 -1 4194560\n").unwrap();
        assert_eq!(process.pid, Pid::from_raw(71).unwrap());
        assert_eq!((process.parent, process.group, process.state), (7, 9, 'S'));
        assert_eq!(process.to_string(), "71 (a) R 1 ( )");
        assert!(parse(b"").is_none() && parse(b"71 (a) S x").is_none());
    }

    #[test]
    fn children_and_their_children_are_found() {
        let script = "sleep 60 & echo $!; wait";
        let mut command = std::process::Command::new("sh");
        let mut child =
            command.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).unwrap();
        let found = below(rustix::process::getpid(), &[]);
        let of_test =
            [Pid::from_child(&child), Pid::from_raw(said.trim().parse().unwrap()).unwrap()];
        for pid in of_test {
            let process = found.iter().find(|process| process.pid == pid).expect("it is found");
            process.signal(Signal::KILL).unwrap();
        }
        child.wait().unwrap();
    }
}
