//! One error type for every floor: what was tried, on which path, and ZooKeeper's code.

use std::borrow::Cow;
use std::fmt;

/// A ZooKeeper result code, as the C client and the servers number them.
///
/// The set is open: a newer server may send a code without a constant here. Such a code keeps its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($value);)*

            /// The name of the constant, such as `NO_NODE`, if the code is known.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Code::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            fn text(self) -> Option<&'static str> {
                match self {
                    $(Code::$name => Some($text),)*
                    _ => None,
                }
            }

            /// As `Display`, for C; `None` if the code is not a known one.
            #[cfg(feature = "capi")]
            pub(crate) fn c_text(self) -> Option<&'static std::ffi::CStr> {
                match self {
                    $(Code::$name => {
                        std::ffi::CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()).ok()
                    })*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Success. Never found inside an [`Error`].
    OK = 0, "ok";
    /// A system call failed (no file descriptor left, for example). Outcome unknown.
    SYSTEM_ERROR = -1, "system error";
    /// Replies arrived in an impossible order, so the connection was dropped. Outcome unknown.
    RUNTIME_INCONSISTENCY = -2, "runtime inconsistency";
    /// The server's data contradicts itself.
    DATA_INCONSISTENCY = -3, "data inconsistency";
    /// The connection was lost before the reply arrived. Outcome unknown.
    CONNECTION_LOSS = -4, "connection lost";
    /// A message could not be written or read.
    MARSHALLING_ERROR = -5, "marshalling error";
    /// The server does not know this operation.
    UNIMPLEMENTED = -6, "not implemented by the server";
    /// No reply in time. Outcome unknown.
    OPERATION_TIMEOUT = -7, "operation timed out";
    /// An argument is not acceptable; nothing was sent.
    BAD_ARGUMENTS = -8, "bad arguments";
    /// The handle cannot be used in its present state.
    INVALID_STATE = -9, "invalid state";
    /// A reconfiguration found no quorum of the new servers.
    NEW_CONFIG_NO_QUORUM = -13, "no quorum of the new configuration is up to date";
    /// Another reconfiguration is in flight.
    RECONFIG_IN_PROGRESS = -14, "another reconfiguration is in progress";
    /// TLS could not be set up.
    SSL_CONNECTION_ERROR = -15, "tls connection error";
    /// A general server error.
    API_ERROR = -100, "api error";
    /// The znode does not exist.
    NO_NODE = -101, "no node";
    /// The session has no permission for this.
    NO_AUTH = -102, "not authorized";
    /// The version given is not the znode's.
    BAD_VERSION = -103, "version conflict";
    /// An ephemeral znode cannot have children.
    NO_CHILDREN_FOR_EPHEMERALS = -108, "ephemeral nodes may not have children";
    /// The znode exists already.
    NODE_EXISTS = -110, "node exists";
    /// The znode has children.
    NOT_EMPTY = -111, "node has children";
    /// The session is over, and its ephemeral znodes with it.
    SESSION_EXPIRED = -112, "session expired";
    /// A callback was not acceptable.
    INVALID_CALLBACK = -113, "invalid callback";
    /// The ACL is empty or malformed.
    INVALID_ACL = -114, "invalid acl";
    /// The credentials were refused. The session cannot be used any more.
    AUTH_FAILED = -115, "authentication failed";
    /// The client is closing. Outcome unknown for requests in flight.
    CLOSING = -116, "client is closing";
    /// There is nothing to do (no reply was waiting).
    NOTHING = -117, "nothing to process";
    /// The session has moved to another server. The request was not executed.
    SESSION_MOVED = -118, "session moved to another server";
    /// The server is read-only.
    NOT_READ_ONLY = -119, "write refused by a read-only server";
    /// A local session cannot own ephemeral znodes.
    EPHEMERAL_ON_LOCAL_SESSION = -120, "ephemeral node on a local session";
    /// The watch does not exist.
    NO_WATCHER = -121, "no such watch";
    /// The servers do not allow reconfiguration.
    RECONFIG_DISABLED = -123, "reconfiguration is disabled";
    /// The servers require an identity, and have closed the session.
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124, "session closed: authentication is required";
    /// The request exceeds the quota of a parent znode. Nothing was done.
    QUOTA_EXCEEDED = -125, "quota exceeded";
    /// A limit held the request back. Nothing was done; retry later.
    THROTTLED_OP = -127, "too many requests";
    /// A code of zklock: the outcome is unknown, and will stay unknown.
    /// [`LockError::OutcomeUnknown`](crate::LockError::OutcomeUnknown) says why.
    OUTCOME_UNKNOWN = -2007, "outcome unknown";
    /// A code of zklock: there was no connection, and a [transaction](crate::Client::multi) does not wait for one.
    /// Nothing was sent; retry later.
    NOT_CONNECTED = -2008, "not connected";
}

impl Code {
    /// Wraps a number that came from the C client or a server.
    pub const fn from_raw(code: i32) -> Code {
        Code(code)
    }

    /// The number.
    pub const fn as_raw(self) -> i32 {
        self.0
    }

    /// Whether the request may or may not have been executed.
    ///
    /// Such a code is *not* a failure. Look up the outcome; never repeat the request blindly.
    pub const fn is_outcome_unknown(self) -> bool {
        matches!(
            self,
            Code::SYSTEM_ERROR
                | Code::RUNTIME_INCONSISTENCY
                | Code::CONNECTION_LOSS
                | Code::OPERATION_TIMEOUT
                | Code::CLOSING
                | Code::OUTCOME_UNKNOWN
        )
    }

    /// Whether the servers have judged the request against the tree: the C client gives none of
    /// these codes by itself.
    pub(crate) const fn is_server_decision(self) -> bool {
        matches!(
            self,
            Code::OK
                | Code::NO_NODE
                | Code::NODE_EXISTS
                | Code::NOT_EMPTY
                | Code::BAD_VERSION
                | Code::NO_AUTH
                | Code::NO_CHILDREN_FOR_EPHEMERALS
                | Code::QUOTA_EXCEEDED
        )
    }

    /// The remedy, if neither the code nor the path tell.
    pub(crate) fn remedy(self, op: &str) -> &'static str {
        match self {
            Code::UNIMPLEMENTED if op == "create" => {
                "the server is older than ZooKeeper 3.5, the oldest that zklock works with; or, for a \
                 time to live, its extendedTypesEnabled is off"
            }
            Code::QUOTA_EXCEEDED => {
                "raise the quota of a znode above it (setquota), or delete what it counts"
            }
            Code::EPHEMERAL_ON_LOCAL_SESSION => {
                "ephemeral znodes, of which locks are made, need a global session: let the servers make one of a \
                 local session (localSessionsUpgradingEnabled)"
            }
            Code::SESSION_CLOSED_REQUIRE_SASL_AUTH => {
                "the servers take only clients with an identity of theirs (enforce.auth.schemes): give \
                 the client one when it connects"
            }
            _ => "",
        }
    }

    /// Whether the code means that the session cannot be used any more.
    pub const fn is_session_over(self) -> bool {
        matches!(
            self,
            Code::SESSION_EXPIRED | Code::AUTH_FAILED | Code::INVALID_STATE | Code::CLOSING
        )
    }

    /// Whether the request was certainly not executed, and may be sent again unchanged.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Code::THROTTLED_OP
                | Code::RECONFIG_IN_PROGRESS
                | Code::SESSION_MOVED
                // It waited for a connection whose handshake has failed.
                | Code::SSL_CONNECTION_ERROR
                | Code::NOT_CONNECTED
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => write!(f, "zookeeper error {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}({})", self.0),
            None => write!(f, "Code({})", self.0),
        }
    }
}

/// An error of a client's operation: the operation, the path and the code.
///
/// It prints as one lowercase line: `create /locks/a: node exists`.
#[derive(Clone, thiserror::Error)]
#[error("{}", .0)]
pub struct Error(Box<Report>);

#[derive(Clone)]
struct Report {
    op: &'static str,
    path: String,
    code: Code,
    detail: Cow<'static, str>,
    operation: Option<usize>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op)?;
        if !self.path.is_empty() {
            // A hostile path must not be able to forge a second line.
            write!(f, " {}", self.path.escape_debug())?;
        }
        write!(f, ": {}", self.code)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// Enough of a path to recognise it; a hostile one of a megabyte would hide the message.
pub(crate) fn recognisable(path: &str) -> String {
    match path.char_indices().nth(256) {
        Some((at, _)) => format!("{}...", &path[..at]),
        None => path.to_owned(),
    }
}

impl Error {
    pub(crate) fn new(op: &'static str, path: &str, code: Code) -> Error {
        Error::with_detail(op, path, code, "")
    }

    /// The servers' answer, with a remedy where that is not obvious.
    pub(crate) fn answered(op: &'static str, path: &str, code: Code) -> Error {
        Error::with_detail(op, path, code, code.remedy(op))
    }

    pub(crate) fn with_detail(
        op: &'static str,
        path: &str,
        code: Code,
        detail: impl Into<Cow<'static, str>>,
    ) -> Error {
        let path = recognisable(path);
        Error(Box::new(Report { op, path, code, detail: detail.into(), operation: None }))
    }

    /// Says that the operation at `index` failed its transaction.
    pub(crate) fn of_operation(mut self, index: usize) -> Error {
        self.0.operation = Some(index);
        self
    }

    /// The index of the operation that failed a [transaction](crate::Client::multi), from 0. `None` if the request was
    /// no transaction, or the transaction failed as a whole.
    pub fn failed_op_index(&self) -> Option<usize> {
        self.0.operation
    }

    /// ZooKeeper's code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The detail besides the code, or `otherwise` if there is none.
    pub(crate) fn detail_or(&self, otherwise: &'static str) -> Cow<'static, str> {
        match &*self.0.detail {
            "" => otherwise.into(),
            _ => self.0.detail.clone(),
        }
    }

    /// The operation, such as `create`.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The path of the operation, at most 256 characters of it. Empty if there is none.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Whether the request may or may not have been executed: see [`Code::is_outcome_unknown`].
    pub fn is_outcome_unknown(&self) -> bool {
        self.code().is_outcome_unknown()
    }

    /// Whether the connection was lost before a reply came.
    pub fn is_connection_loss(&self) -> bool {
        self.code() == Code::CONNECTION_LOSS
    }

    /// Whether a deadline has passed.
    pub fn is_timeout(&self) -> bool {
        self.code() == Code::OPERATION_TIMEOUT
    }

    /// Whether the session is over: see [`Code::is_session_over`].
    pub fn is_session_over(&self) -> bool {
        self.code().is_session_over()
    }

    /// Whether a caller that changes nothing, or may repeat its change, should go on. The outcome can be looked up,
    /// or nothing was done, or the session is over and the next one starts afresh. If there is no next session,
    /// waiting for it fails.
    pub(crate) fn is_transient(&self) -> bool {
        self.is_outcome_unknown() || self.code().is_retryable() || self.is_session_over()
    }

    /// Whether the znode does not exist.
    pub fn is_no_node(&self) -> bool {
        self.code() == Code::NO_NODE
    }

    /// Whether the znode exists already.
    pub fn is_node_exists(&self) -> bool {
        self.code() == Code::NODE_EXISTS
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({} [{:?}])", self.0, self.0.code)
    }
}

/// The result of a client's operation. With another error type, that of other operations: `Result<Guard, LockError>`.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_lowercase_line() {
        let error = Error::new("create", "/a/b", Code::NODE_EXISTS);
        assert_eq!(error.to_string(), "create /a/b: node exists");
        let error = Error::with_detail("acquire", "/a\nb", Code::OPERATION_TIMEOUT, "3 ahead");
        assert_eq!(error.to_string(), "acquire /a\\nb: operation timed out: 3 ahead");
        let error = Error::new("create", crate::text::HARMFUL, Code::NODE_EXISTS).to_string();
        assert!(error.is_ascii() && !error.contains(char::is_control), "{error}");
    }

    #[test]
    fn an_unknown_code_keeps_its_number() {
        assert_eq!(Code::from_raw(-122).to_string(), "zookeeper error -122");
        assert_eq!(Code::from_raw(-122).as_raw(), -122);
        assert_eq!(format!("{:?}", Code::from_raw(-101)), "NO_NODE(-101)");
    }

    #[test]
    fn a_huge_path_does_not_hide_the_message() {
        let error = Error::new("get", &"/é".repeat(100_000), Code::BAD_ARGUMENTS);
        assert!(error.to_string().len() < 1_000);
    }
}
