//! What can happen to a frame.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// What happens to the frames that a rule picks.
#[non_exhaustive]
pub enum Action {
    /// Swallows the frame and resets the client's connection.
    ///
    /// A dropped request never reached the server. What the client asked before it has been answered, provided that
    /// the server answers within a second; whatever came after it is lost as well.
    ///
    /// A dropped reply leaves the server having done what the client does not know of. Earlier replies have arrived.
    ///
    /// A dropped watch event is not lost for good to a client that sets its watches again when it has reconnected: the
    /// server then tells it what it has missed.
    ///
    /// The server sees its client close the connection; the session lives on until it times out or comes back.
    Drop,
    /// Swallows the frame and leaves the connection hanging: silence both ways from then on, until a peer gives up or
    /// [`Proxy::heal`](super::Proxy::heal) resets it.
    Stall,
    /// Forwards the frame so much later. Frames that follow it wait behind it.
    Delay(Duration),
    /// Resets the connection at both ends at once, instead of forwarding the frame. Replies on their way are lost.
    Reset,
    /// Runs this when the frame's turn comes, and then forwards it. It may use the proxy, and may block: frames that
    /// follow wait, and so does the drop of the proxy. If it panics, the connection is reset.
    ///
    /// An action that owns the very proxy it is installed at, by an `Arc`, keeps it from ever being dropped until the
    /// rule is removed: give it a `Weak`, or use a [`Gate`](super::Gate).
    Run(Box<dyn FnMut() + Send>),
    /// As [`Action::Run`], and is told the frame's number, as [`Rule::nth`](super::Rule::nth) would count it: frames
    /// that arrived and whose turn never came have one, too.
    RunNumbered(Numbered),
}

type Numbered = Box<dyn FnMut(u64) + Send>;

impl Action {
    /// [`Action::Run`], boxed.
    pub fn run(action: impl FnMut() + Send + 'static) -> Action {
        Action::Run(Box::new(action))
    }

    /// [`Action::RunNumbered`], boxed.
    pub fn run_numbered(action: impl FnMut(u64) + Send + 'static) -> Action {
        Action::RunNumbered(Box::new(action))
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Drop => formatter.write_str("Drop"),
            Action::Stall => formatter.write_str("Stall"),
            Action::Delay(delay) => formatter.debug_tuple("Delay").field(delay).finish(),
            Action::Reset => formatter.write_str("Reset"),
            Action::Run(_) => formatter.write_str("Run(..)"),
            Action::RunNumbered(_) => formatter.write_str("RunNumbered(..)"),
        }
    }
}

/// An action as the pumps of several connections share it.
#[derive(Clone)]
pub(super) enum Effect {
    Drop,
    Stall,
    Delay(Duration),
    Reset,
    Run(Arc<Mutex<Numbered>>),
    Hold,
}

impl Effect {
    pub(super) fn ends_connection(&self) -> bool {
        matches!(self, Effect::Drop | Effect::Stall | Effect::Reset)
    }

    pub(super) fn delay(&self) -> Duration {
        match self {
            Effect::Delay(delay) => *delay,
            _ => Duration::ZERO,
        }
    }
}

impl From<Action> for Effect {
    fn from(action: Action) -> Effect {
        match action {
            Action::Drop => Effect::Drop,
            Action::Stall => Effect::Stall,
            Action::Delay(delay) => Effect::Delay(delay),
            Action::Reset => Effect::Reset,
            Action::Run(mut run) => Effect::Run(Arc::new(Mutex::new(Box::new(move |_| run())))),
            Action::RunNumbered(run) => Effect::Run(Arc::new(Mutex::new(run))),
        }
    }
}
