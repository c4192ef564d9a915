//! Locks on simulated servers: on one thread, in virtual time, every run repeatable.
//!
//! # What is simulated
//! What is below a client: the C client's handle (it takes requests, and gives answers, events and a
//! state), the clock, and the thread that drives sessions. So what runs is production code, from the
//! public [`Lock`](crate::Lock) down to session trust, heartbeats, reconnection, watches and guaranteed
//! deletion: see [`simulated`](crate::client::simulated).
//!
//! # What is modelled
//! A leader orders the writes; each session has a server that applies them (at once, or lagging).
//! A session's requests are taken up in their order, and answers and watch events come back in the
//! servers' order. A connection can break: what the servers had got they may still execute, until
//! the session moves on. A client that is back sets its watches again. The leader counts a session as
//! alive when it connects, and when its server reports that it has heard of the client, which takes up to
//! half a tick. It gives the session up when the session timeout has passed since then by the clock of
//! *that client*; that and the end of its znodes are two steps, with the client's next session perhaps
//! between them. Each client has a clock of its own,
//! which passes at the schedule's pace: nothing in a session depends on another client's, so two
//! processes need not be equally fast. A healthy connection answers within a quarter of the session timeout.
//!
//! All contend for one lock, or some for another, or for both together by one transaction.
//!
//! What goes wrong: time passes without an answer, so that requests are late or trust ends; a connection
//! carries one direction only, or reaches a server that is cut off from its leader (it answers reads, from
//! the past, and nothing else), for up to twice the session timeout; then all that was held up comes late,
//! or the client leaves and it never comes. Processes are frozen or killed, acquires given up. Operators delete claims, and the directory, and make it anew;
//! empty directories are reaped. Somebody puts children into the directory, or sets a claim's data: to
//! something else, or with a line more. Another library's contender makes its claim and goes. Somebody changes
//! how many permits a semaphore has.
//!
//! # What is checked
//! Only what anybody could see: guards, tokens, the servers' log and tree, watches.
//!
//! - At every step, of each lock: who *believes* that it holds (its guard does not say lost) has its claim on the
//!   servers, in a session that they have not given up, and no earlier claim is there that keeps it out, whoever
//!   made it: of readers, a writer's; of those who take
//!   permits, so many that too few are left; of all others, any. So none believe that may not hold together
//!   (`share.rs`). Except whose claim an operator has deleted: it may believe until the event of the watch
//!   on its claim was delivered and its code has run. A guard that says deleted is right about that.
//! - No client believes for longer than the answers that it received prove by the rules of `tests/spec/lease.pml`
//!   (`trust.rs`). This is not checked in reduced scenarios, where heartbeats take no time.
//! - When an acquire ends: its guard is held; its token is the czxid of a claim, made for this very
//!   acquire in this session, at the guard's path; in a queue, the name is one of the directory that
//!   is there. Tokens grow from one to the next that may not hold beside it, and none is given twice. The claim
//!   was such that it may hold at some time, and had not been shown to be gone. A deadline has passed before it ends an acquire. Who only tried found another's
//!   claim, and has left none.
//! - When a release ends: the claim is gone, and was not before, if it says so. No deletion hits another's
//!   znode, but in the round trip after a look at one that an operator then deleted.
//! - At rest (nothing can happen unless somebody releases): all others wait, each with one claim of each lock and, at
//!   the first where it is kept out, a watch on the nearest before it that keeps it out, which is there (behind permits that are held, on the
//!   directory's children); who was robbed knows, if it holds and its claim is
//!   watched; nobody has a claim that it does not want.
//! - At the end: everybody is done, and no claim, session, task, watch or deletion is left.
//!
//! # All schedules
//! A *reduced* scenario has fewer schedules and the same outcomes. What one client alone can see
//! (answers that arrive, code that runs, trust that ends) happens at once, for it commutes with all
//! that others do: only the order in which the servers take up requests, when pauses end, and where
//! faults fall, is left to choose. A pause that could change nothing ends once, not for ever. Heartbeats
//! are taken up, and reported, at once. Of clients to whom nothing has happened yet, and who do the same, one stands for all. And where two schedules lead
//! to one state (as a digest of 64 bits), one of them goes on. Nothing else is left out of it; but
//! each contender acquires once, time does not pass for the watch on held claims, and the rarer faults are
//! explored by themselves (`unusual`, in long runs). Scenarios that have too many schedules (three readers and two writers
//! with one fault) are drawn, and fifty schedules around each are explored. Random schedules reduce nothing, draw all faults,
//! acquire more than once, and watch held claims; in half of them holders release only at rest.
//!
//! # To repeat a failure
//! It prints the command, with `ZKLOCK_SEED` or with `ZKLOCK_SCENARIO` and `ZKLOCK_CHOICES`.
//! `make simulate` runs far more than `cargo test` does: among them three contenders with one fault.

mod board;
mod checks;
mod client;
mod contender;
mod digest;
mod effort;
mod faults;
mod handle;
mod machine;
mod replay;
mod request;
mod run;
mod scenario;
mod schedule;
mod server;
mod session;
mod share;
mod shown;
mod steps;
mod tasks;
mod tests;
mod trust;
mod world;
