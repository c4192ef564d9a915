//! What goes wrong.

use std::fmt;

use crate::foreign::Interference;
use crate::silence::Lasting;
use crate::step::{Side, Step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The frame is lost, with its connection; what came before it has been answered.
    Dropped(Side),
    /// The frame comes when the operation's deadline has passed.
    Late(Side),
    /// The connection is reset at both ends.
    Reset(Side),
    /// The servers end the session at once.
    Expired(Side),
    /// Nothing passes until the session has timed out.
    Silent(Side),
    /// From the frame on, none of its direction passes; those of the other one do.
    OneWay(Side, Lasting),
    /// The server crashes when it has done what was asked, and comes back.
    Restarted,
    /// Nothing, but that a client of another kind does something to the tree.
    Interfered(Side, Interference),
}

impl Fault {
    /// Those of servers and network.
    pub const ALL: [Fault; 15] = [
        Fault::Dropped(Side::Request),
        Fault::Dropped(Side::Reply),
        Fault::Late(Side::Request),
        Fault::Late(Side::Reply),
        Fault::Reset(Side::Request),
        Fault::Reset(Side::Reply),
        Fault::Expired(Side::Request),
        Fault::Expired(Side::Reply),
        Fault::Silent(Side::Request),
        Fault::Silent(Side::Reply),
        Fault::OneWay(Side::Request, Lasting::UntilDoubted),
        Fault::OneWay(Side::Reply, Lasting::UntilDoubted),
        Fault::OneWay(Side::Request, Lasting::UntilOver),
        Fault::OneWay(Side::Reply, Lasting::UntilOver),
        Fault::Restarted,
    ];

    pub fn side(self) -> Side {
        match self {
            Fault::Dropped(side)
            | Fault::Late(side)
            | Fault::Reset(side)
            | Fault::Expired(side)
            | Fault::Silent(side)
            | Fault::OneWay(side, _)
            | Fault::Interfered(side, _) => side,
            Fault::Restarted => Side::Reply,
        }
    }

    pub fn is_late(self) -> bool {
        matches!(self, Fault::Late(_))
    }

    /// Whether the session is over by it, or lost to a client that can't know.
    pub fn ends_the_session(self) -> bool {
        matches!(self, Fault::Expired(_) | Fault::Silent(_) | Fault::OneWay(..))
    }

    /// Whether the servers end the session before its time, which no client can foresee.
    pub fn is_unforeseeable(self) -> bool {
        matches!(self, Fault::Expired(_))
    }

    /// Whether sessions are so short that a very busy machine can lose one.
    pub fn has_short_sessions(self) -> bool {
        matches!(self, Fault::Silent(_) | Fault::OneWay(..))
    }

    /// Whether the frame never comes to where it was to go.
    pub fn swallows(self) -> bool {
        matches!(self, Fault::Dropped(_) | Fault::Reset(_) | Fault::Expired(_) | Fault::Silent(_))
    }

    pub fn restarts_the_server(self) -> bool {
        self == Fault::Restarted
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = match self.side() {
            Side::Request => "before",
            Side::Reply => "after",
        };
        let (frame, frames) = match self.side() {
            Side::Request => ("request", "requests"),
            Side::Reply => ("reply", "replies"),
        };
        match self {
            Fault::Dropped(_) => write!(f, "{frame} dropped"),
            Fault::Late(_) => write!(f, "{frame} late"),
            Fault::Reset(_) => write!(f, "reset {before}"),
            Fault::Expired(_) => write!(f, "expired {before}"),
            Fault::Silent(_) => write!(f, "silent {before}"),
            Fault::OneWay(_, Lasting::UntilDoubted) => write!(f, "{frames} held, doubted"),
            Fault::OneWay(_, Lasting::UntilOver) => write!(f, "{frames} held, over"),
            Fault::Restarted => f.write_str("restarted"),
            Fault::Interfered(_, interference) => write!(f, "{} {before}", interference.name()),
        }
    }
}

/// A fault at a step.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    pub step: Step,
    pub fault: Fault,
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.step, self.fault)
    }
}
