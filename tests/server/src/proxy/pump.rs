//! Moves one direction of a connection, frame by frame.
//!
//! A frame is judged by the rules when it arrives, and what they say is carried out when its turn comes: in the order
//! of the stream, and not before the time that it is to travel is over. Waiting frames queue up here, so that a row
//! of delayed frames overlaps as on a long line.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::core::{Fired, Shared, Traffic};
use super::introduction::without_address;
use super::link::{Ending, Link, Passed, Way, wait_for};
use super::seen::Direction;
use crate::deadline;
use crate::wire::{Frames, Taken};

pub(super) struct Pump {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Arc<Link>,
    pub(super) way: Way,
    frames: Frames,
    queue: VecDeque<Item>,
    /// The source has no more to say, or what it says does not matter any more.
    ended: bool,
    /// The stream's first bytes say who sends it, and have not all come.
    introduces: bool,
}

struct Item {
    due: Instant,
    bytes: Vec<u8>,
    fired: Vec<Fired>,
    /// A request that will be answered, or an answer.
    counts: bool,
}

/// Starts the thread that connects to the server, starts the other direction's thread, and moves requests.
pub(super) fn start(shared: &Arc<Shared>, link: &Arc<Link>) -> io::Result<JoinHandle<()>> {
    let pump = Pump::new(shared, link, Way::ToServer);
    thread::Builder::new().name("zk-proxy-requests".into()).spawn(move || {
        // A link that is silent from the start never reaches the server.
        if pump.link.is_silent() {
            pump.park();
        } else if pump.connect().is_err() {
            pump.end(Ending::Reset);
        }
        pump.run();
    })
}

impl Pump {
    fn new(shared: &Arc<Shared>, link: &Arc<Link>, way: Way) -> Pump {
        Pump {
            shared: Arc::clone(shared),
            link: Arc::clone(link),
            way,
            frames: Frames::default(),
            queue: VecDeque::new(),
            ended: false,
            introduces: way == Way::ToServer && shared.traffic == Traffic::Election,
        }
    }

    fn connect(&self) -> io::Result<()> {
        let server = self.reach()?;
        server.set_nodelay(true)?;
        server.set_nonblocking(true)?;
        if !self.link.set_server(server) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let replies = Pump::new(&self.shared, &self.link, Way::ToClient);
        let thread = thread::Builder::new()
            .name("zk-proxy-replies".into())
            .spawn(move || replies.run())
            .inspect_err(|_| {
                // The pump that never was has left, too.
                self.link.ended.fetch_add(1, Ordering::SeqCst);
            })?;
        self.shared.core.lock().add_thread(thread);
        Ok(())
    }

    fn run(mut self) {
        // A panic can only come from a test's own action; it has been reported where it happened.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.pump()));
        if !matches!(outcome, Ok(Ok(()))) {
            // One end was reset, so the other one is.
            self.end(Ending::Reset);
        }
        self.leave();
    }

    /// The last one to leave closes both sockets and takes the link off the proxy's list.
    fn leave(&self) {
        // With no server there is no second pump.
        let pumps = if self.link.source(Way::ToClient).is_some() { 2 } else { 1 };
        if self.link.ended.fetch_add(1, Ordering::SeqCst) + 1 >= pumps {
            self.end(Ending::Orderly);
            let mut core = self.shared.core.lock();
            core.links.retain(|link| !Arc::ptr_eq(link, &self.link));
            self.shared.changed.notify_all();
        }
    }

    pub(super) fn end(&self, ending: Ending) {
        self.link.close(ending);
        // Through the lock, so that nobody looks before and waits after.
        drop(self.shared.core.lock());
        self.shared.changed.notify_all();
    }

    fn pump(&mut self) -> io::Result<()> {
        loop {
            while self.queue.front().is_some_and(|item| item.due <= Instant::now()) {
                let Some(item) = self.queue.pop_front() else {
                    break;
                };
                if !self.pass(item)? {
                    return Ok(());
                }
            }
            if self.link.is_closed() {
                return Ok(());
            }
            let due = self.queue.front().map(|item| item.due);
            match (self.ended, due) {
                (true, None) => {
                    self.link.finish(self.way);
                    return Ok(());
                }
                (true, Some(due)) => self.wait_until(due),
                (false, due) => {
                    self.read(due.map(|due| due.saturating_duration_since(Instant::now())))?;
                }
            }
        }
    }

    /// Waits for the time, or for the link's end.
    fn wait_until(&self, due: Instant) {
        let mut core = self.shared.core.lock();
        while !self.link.is_closed() && !self.shared.changed.wait_until(&mut core, due).timed_out()
        {
        }
    }

    /// Waits for the link's end.
    pub(super) fn park(&self) {
        let mut core = self.shared.core.lock();
        while !self.link.is_closed() {
            self.shared.changed.wait(&mut core);
        }
    }

    fn read(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let link = Arc::clone(&self.link);
        let Some(mut source) = link.source(self.way) else {
            self.ended = true;
            return Ok(());
        };
        wait_for(source, PollFlags::IN, timeout)?;
        // A silent link notices nothing, not even that a peer has gone.
        if link.is_silent() {
            self.park();
            return Ok(());
        }
        let mut chunk = [0; 16 * 1024];
        match source.read(&mut chunk) {
            Ok(0) => {
                self.ended = true;
                let rest = self.frames.rest();
                self.enqueue(rest, Vec::new(), self.shared.latency(), false);
            }
            Ok(length) => {
                self.frames.push(&chunk[..length]);
                self.arrive();
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Judges the frames that are complete.
    fn arrive(&mut self) {
        while !self.ended {
            if self.link.foreign.load(Ordering::SeqCst) {
                let mut bytes = self.frames.rest();
                if self.introduces {
                    let Some(changed) = without_address(&bytes) else {
                        self.frames.push(&bytes);
                        return;
                    };
                    self.introduces = false;
                    bytes = changed;
                }
                self.enqueue(bytes, Vec::new(), self.shared.latency(), false);
                return;
            }
            match self.frames.take() {
                None => return,
                Some(Taken::Foreign(bytes)) => {
                    self.link.foreign.store(true, Ordering::SeqCst);
                    self.enqueue(bytes, Vec::new(), self.shared.latency(), false);
                }
                Some(Taken::Frame(frame)) => {
                    let mut conversation = self.link.conversation.lock();
                    let seen = match self.way {
                        Way::ToServer => conversation.request(self.link.number, &frame),
                        Way::ToClient => conversation.reply(self.link.number, &frame),
                    };
                    let session = conversation.session;
                    drop(conversation);
                    if let (Way::ToClient, Some(session)) = (self.way, session) {
                        self.shared.note_session(seen.op, session);
                    }
                    let counts = seen.direction != Direction::Event;
                    let (fired, delay) = self.shared.judge(seen);
                    // Nothing after a frame that ends the connection is looked at any more.
                    self.ended = fired.last().is_some_and(|last| last.effect.ends_connection());
                    self.enqueue(frame, fired, delay, counts);
                }
            }
        }
    }

    fn enqueue(&mut self, bytes: Vec<u8>, fired: Vec<Fired>, delay: Duration, counts: bool) {
        self.queue.push_back(Item { due: deadline::after(delay), bytes, fired, counts });
    }

    /// Carries out what the rules said, and forwards the frame. `false` when this direction is over.
    fn pass(&mut self, item: Item) -> io::Result<bool> {
        for fired in &item.fired {
            if self.link.is_silent() {
                break;
            }
            if !self.carry_out(fired) {
                return Ok(false);
            }
        }
        if item.counts && self.way == Way::ToServer {
            self.link.unanswered.fetch_add(1, Ordering::SeqCst);
        }
        match self.link.write(self.way, &item.bytes) {
            Ok(Passed::Yes) => {}
            Ok(Passed::Closed) => return Ok(false),
            Ok(Passed::Silent) => {
                self.park();
                return Ok(false);
            }
            // A client that has gone may have left requests behind: the other pump brings them to the server first.
            Err(_) if self.way == Way::ToClient => return Ok(false),
            Err(error) => return Err(error),
        }
        if item.counts
            && self.way == Way::ToClient
            && self.link.unanswered.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // Whoever drops a request may wait for this.
            drop(self.shared.core.lock());
            self.shared.changed.notify_all();
        }
        Ok(true)
    }
}
