//! Turns ZooKeeper's refusals, and reasons why there can be no lock, into the errors of a lock.

use crate::error::{Code, Error, Result};
use crate::lock::LockError;
use crate::lock::LostReason;

/// Why there can be no lock at a path, however long one waits.
#[derive(Clone, Copy)]
pub(super) struct Obstacle {
    code: Code,
    why: &'static str,
}

/// Data, which no session's end will ever remove.
pub(super) const NOT_A_LOCK: Obstacle = Obstacle {
    code: Code::NODE_EXISTS,
    why: "the znode there is not ephemeral, so it is no lock of this strategy: use another path, or the \
          queue strategy",
};

/// The znode there can have no children.
pub(super) const NOT_A_QUEUE: Obstacle = Obstacle {
    code: Code::NO_CHILDREN_FOR_EPHEMERALS,
    why: "the znode there is ephemeral, perhaps a poll or watch lock: a queue lock needs a path of its own",
};

pub(super) const NO_CHROOT: Obstacle = Obstacle {
    code: Code::NO_NODE,
    why: "the chroot of the client's host string does not exist: create it",
};

pub(super) const TOO_FEW_PERMITS: Obstacle =
    Obstacle { code: Code::BAD_ARGUMENTS, why: "it has fewer permits than are asked for" };

pub(super) const NO_NUMBER_LEFT: Obstacle = Obstacle {
    code: Code::NODE_EXISTS,
    why: "the directory's counter is at its end, and the last number is taken by a znode that no session \
          will ever end: delete the directory",
};

/// The claim of the hold that was to be changed is gone. The caller finds that in the code.
pub(super) const GONE: Obstacle =
    Obstacle { code: Code::NO_NODE, why: "somebody has deleted the claim of the hold" };

pub(super) const NO_PLACE_LEFT: Obstacle = Obstacle {
    code: Code::NODE_EXISTS,
    why: "the directory's counter is at its end, so a hold can't be changed any more: delete the directory \
          when nobody uses the lock",
};

impl Obstacle {
    pub(super) fn bad_path(why: &'static str) -> Obstacle {
        Obstacle { code: Code::BAD_ARGUMENTS, why }
    }

    pub(super) fn at(self, path: &str) -> LockError {
        LockError::unusable(path, self.why, self.code)
    }
}

/// The servers' answer, or `None` if there is no such znode.
pub(super) fn found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Err(error) if error.is_no_node() => Ok(None),
        answer => answer.map(Some),
    }
}

/// Of an acquire, or of a look at who contends.
pub(super) fn refused(path: &str, error: Error) -> LockError {
    let code = error.code();
    let advice = match code {
        Code::NO_AUTH => return LockError::not_permitted(path, missing_permission(&error)),
        // It says itself what is wrong.
        Code::BAD_ARGUMENTS => "",
        Code::NO_CHILDREN_FOR_EPHEMERALS => ": nothing can be below it, so use another path",
        Code::INVALID_ACL => ": what the lock makes needs an acl that the servers accept",
        _ => return LockError::store(path, error),
    };
    LockError::unusable(path, format!("{error}{advice}"), code)
}

/// Of a release.
pub(super) fn not_released(path: &str, error: Error) -> LockError {
    match error.code() {
        Code::NO_AUTH => {
            let missing = missing_permission(&error);
            LockError::not_permitted(
                path,
                format!("{missing}: the lock stays until the session ends"),
            )
        }
        Code::SESSION_EXPIRED => LockError::lost(path, LostReason::Session),
        code if code.is_outcome_unknown() => LockError::outcome_unknown(path, error),
        code if code.is_session_over() => LockError::closed(path, error),
        _ => LockError::store(path, error),
    }
}

/// The error of a transaction that begins with `checks` checks of locks.
pub(super) fn not_written(path: &str, checks: usize, error: Error) -> LockError {
    match error.code() {
        Code::SESSION_EXPIRED => LockError::not_held(path, LostReason::Session),
        Code::NO_NODE if error.failed_op_index().is_some_and(|at| at < checks) => {
            LockError::not_held(path, LostReason::Deleted)
        }
        code if code.is_outcome_unknown() => LockError::outcome_unknown(path, error),
        _ => LockError::store(path, error),
    }
}

/// ZooKeeper asks for some permissions on the znode above.
fn missing_permission(error: &Error) -> String {
    let above = match error.path().rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((above, _)) => above,
    };
    let (permission, on) = match error.op() {
        "create" => ("CREATE", above),
        "delete" => ("DELETE", above),
        "set" => ("WRITE", error.path()),
        _ => ("READ", error.path()),
    };
    format!("the session has no {permission} permission on {}", on.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [Code; 14] = [
        Code::SYSTEM_ERROR,
        Code::CONNECTION_LOSS,
        Code::OPERATION_TIMEOUT,
        Code::BAD_ARGUMENTS,
        Code::CLOSING,
        Code::INVALID_STATE,
        Code::AUTH_FAILED,
        Code::SESSION_EXPIRED,
        Code::NO_AUTH,
        Code::NO_CHILDREN_FOR_EPHEMERALS,
        Code::INVALID_ACL,
        Code::QUOTA_EXCEEDED,
        Code::NOT_CONNECTED,
        Code::from_raw(-199),
    ];

    #[test]
    fn a_c_program_gets_the_code_of_what_was_refused() {
        for code in CODES {
            for meaning in [refused, not_released, |path: &str, error| not_written(path, 1, error)]
            {
                let error = Error::new("delete", "/locks/a/zl-1f-lock-0000000007", code);
                let meant = meaning("/locks/a", error);
                let told = if meant.is_outcome_unknown() { Code::OUTCOME_UNKNOWN } else { code };
                assert_eq!((meant.code(), meant.path()), (told, "/locks/a"), "{meant:?}");
            }
        }
    }

    #[test]
    fn an_outcome_is_unknown_only_of_what_may_have_been_done() {
        for code in CODES {
            let error = || Error::new("delete", "/locks/a", code);
            let unknown = |meant: LockError| meant.is_outcome_unknown();
            assert!(!unknown(refused("/locks/a", error())), "{code:?}");
            assert_eq!(unknown(not_released("/locks/a", error())), code.is_outcome_unknown());
            assert_eq!(unknown(not_written("/locks/a", 1, error())), code.is_outcome_unknown());
        }
    }

    #[test]
    fn a_permission_is_that_of_the_znode_that_zookeeper_asks() {
        for (op, path, missing) in [
            ("create", "/locks/a/zl-1f-lock-", "CREATE permission on /locks/a"),
            ("create", "/locks", "CREATE permission on /"),
            ("delete", "/locks/a/zl-1f-lock-0000000007", "DELETE permission on /locks/a"),
            ("get", "/locks/a", "READ permission on /locks/a"),
            ("children", "/", "READ permission on /"),
        ] {
            let said = refused("/locks/a", Error::new(op, path, Code::NO_AUTH)).to_string();
            assert_eq!(said, format!("lock /locks/a: the session has no {missing}"));
        }
    }

    #[test]
    fn a_node_that_is_missing_is_the_lock_s_only_where_its_check_says_so() {
        let missing = |at| Error::new("multi", "/locks/a", Code::NO_NODE).of_operation(at);
        assert!(not_written("/locks/a", 1, missing(0)).is_lost());
        assert!(!not_written("/locks/a", 1, missing(1)).is_lost());
        assert!(not_written("/locks/a", 2, missing(1)).is_lost());
    }
}
