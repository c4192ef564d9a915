//! Describes the resource that a system call ran out of, and its limit.

use std::io;

use rustix::process::{Resource, getrlimit};

/// A resource that a process can run out of, and get back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scarce {
    Descriptors,
    /// Of the whole machine.
    Files,
    /// Threads, where the call would have started one.
    Again,
    Memory,
}

fn scarce(error: &io::Error) -> Option<Scarce> {
    let code = error.raw_os_error()?;
    let is = |errno: rustix::io::Errno| code == errno.raw_os_error();
    if is(rustix::io::Errno::MFILE) {
        Some(Scarce::Descriptors)
    } else if is(rustix::io::Errno::NFILE) {
        Some(Scarce::Files)
    } else if is(rustix::io::Errno::AGAIN) {
        Some(Scarce::Again)
    } else if is(rustix::io::Errno::NOMEM) || is(rustix::io::Errno::NOBUFS) {
        Some(Scarce::Memory)
    } else {
        None
    }
}

/// Whether a system call failed for want of a resource.
pub(crate) fn is_scarcity(error: &io::Error) -> bool {
    scarce(error).is_some()
}

/// The missing resource, and its limit.
pub(crate) fn describe(error: &io::Error) -> String {
    let limit = |resource| match getrlimit(resource).current {
        Some(limit) => limit.to_string(),
        None => "unlimited".to_owned(),
    };
    match scarce(error) {
        Some(Scarce::Descriptors) => {
            format!("no file descriptor left: the limit (ulimit -n) is {}", limit(Resource::Nofile))
        }
        Some(Scarce::Files) => {
            "no file descriptor left on this machine: the limit is fs.file-max".to_owned()
        }
        Some(Scarce::Again) => format!(
            "no thread to be had: the limit of this user (ulimit -u) is {}, that of the address space \
             (ulimit -v) is {}, and there are kernel.threads-max and the control group's pids.max",
            limit(Resource::Nproc),
            limit(Resource::As)
        ),
        Some(Scarce::Memory) => format!(
            "no memory to be had: the limit of the address space (ulimit -v) is {}",
            limit(Resource::As)
        ),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_limit() {
        let words = |errno: rustix::io::Errno| {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert!(is_scarcity(&error), "{errno:?}");
            describe(&error)
        };
        assert!(words(rustix::io::Errno::MFILE).contains("ulimit -n"));
        assert!(words(rustix::io::Errno::NFILE).contains("fs.file-max"));
        assert!(words(rustix::io::Errno::AGAIN).contains("ulimit -u"));
        assert!(words(rustix::io::Errno::NOMEM).contains("ulimit -v"));
        let other = io::Error::from(io::ErrorKind::NotFound);
        assert!(!is_scarcity(&other) && describe(&other) == other.to_string());
    }
}
