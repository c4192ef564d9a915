//! A control group (cgroup v2) for the command and its descendants. The kernel kills the whole group at once, so no
//! program escapes by starting others faster than they are found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::Pid;

#[derive(Clone, Debug)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a group below that of this process. `None` if this process may not, or if the kernel (before 5.14) has
    /// no `cgroup.kill`.
    pub fn make() -> Option<Cgroup> {
        let own = own(
            &fs::read_to_string("/proc/self/cgroup").ok()?,
            &fs::read_to_string("/proc/self/mountinfo").ok()?,
        )?;
        let path = own.join(format!("zklock-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let made = Cgroup(path);
        if made.0.join("cgroup.kill").exists() {
            make_moves_fast(&own);
            return Some(made);
        }
        made.remove();
        None
    }

    pub fn at(path: PathBuf) -> Cgroup {
        Cgroup(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Moves this process into it.
    ///
    /// # Errors
    /// It may not.
    pub fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    /// Kills all processes in the group, and those that they start meanwhile.
    pub fn kill(&self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// The processes in the group that have not ended.
    pub fn processes(&self) -> Vec<Pid> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }

    /// Whether no process lives in the group or in groups below it.
    pub fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
        !events.lines().any(|line| line == "populated 1")
    }

    /// Removes the group if it is empty, with groups that nested runs of `zklock` have left below it.
    pub fn remove(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                Cgroup(entry.path()).remove();
            }
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// The first move of a process waits for all processors (an RCU grace period), for 5 to 30 ms. Those that follow soon do
/// not. So this process moves to where it is, before the command has to move.
fn make_moves_fast(own: &Path) {
    let file = own.join("cgroup.procs");
    let _ = thread::Builder::new().name("cgroup".to_owned()).spawn(move || fs::write(file, "0"));
}

/// The directory of the group that a process is in, by what the kernel says of its groups and its mounts.
fn own(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    let mount = mounts.lines().rev().find(|line| line.contains(" - cgroup2 "))?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    // Above the mount's root, which is shown as `/..`, nothing can be made.
    let below = group.strip_prefix(root).ok()?;
    (!below.starts_with("..")).then(|| Path::new(point).join(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_below_the_mount() {
        let mount = |root: &str| {
            format!(
                "24 1 0:2 / /proc rw - proc proc rw\n31 23 0:26 {root} /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"
            )
        };
        let found = |groups: &str, root: &str| {
            own(groups, &mount(root)).map(|path| path.display().to_string())
        };
        let expected = Some("/sys/fs/cgroup/user.slice/a".to_owned());
        assert_eq!(found("1:cpu:/x\n0::/user.slice/a\n", "/"), expected);
        assert_eq!(found("0::/docker/1/user.slice/a\n", "/docker/1"), expected);
        assert_eq!(found("0::/elsewhere\n", "/docker/1"), None);
        assert_eq!(found("0::/../a\n", "/"), None);
        assert_eq!((found("1:cpu:/x\n", "/"), own("0::/\n", "")), (None, None));
    }
}
