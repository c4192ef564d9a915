//! One run of a scenario: what can happen, one thing after the other, until nothing can.

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::board::{Board, Post, SharedBoard};
use super::checks;
use super::client::Connection;
use super::contender::{contend, note};
use super::digest::Digest;
use super::handle::{Shared, act};
use super::machine::ClientMachine;
use super::request::Request;
use super::scenario::{Fault, LOCK, Scenario};
use super::server::{Change, Kind, New, SESSION_TIMEOUT};
use super::steps::Step;
use super::tasks::Tasks;
use super::world::World;
use crate::client::{Client, ClientOptions};
use crate::lock::Strategy;
use crate::zookeeper::shortcuts::memory::PathMemory;

/// How often a client's clock passes while nothing changes in the world: in random schedules though it
/// waits for nothing; in reduced ones for those who wait on it, and until its session is trusted again.
const IDLE_PASSES: u32 = 4;
const PASSES_THAT_MATTER: u32 = 1;
const PASSES_TO_SETTLE: u32 = 40;

/// More steps than any run takes that gets anywhere.
const TOO_MANY_STEPS: usize = 20_000;

/// Chooses what happens next.
pub(super) trait Schedule {
    /// The next step, where it follows from other runs with the same beginning; and whether one of
    /// them has done, and checked, that step too.
    fn known(&mut self) -> Option<(Step, bool)> {
        None
    }

    /// The number of one of the steps, of which those from `faults_from` on are faults; `None` to
    /// end the run here.
    fn choose(&mut self, run: &Run, steps: &[Step], faults_from: usize) -> Option<usize>;
}

pub(super) struct Run {
    pub(super) world: Shared,
    pub(super) board: SharedBoard,
    pub(super) machines: Vec<Rc<ClientMachine>>,
    pub(super) clients: Vec<Client>,
    /// First what drives the clients' sessions, then the contenders.
    pub(super) tasks: Tasks,
    pub(super) scenario: Arc<Scenario>,
    pub(super) faults_left: u32,
    /// What has happened.
    pub(super) trace: Vec<Step>,
    /// To which clients anything has happened yet.
    touched: Vec<bool>,
    /// Whether what happens now is checked; it is not when another run has been here.
    checked: bool,
}

/// How a run has ended.
pub(super) struct Ended {
    /// The schedule has ended it early.
    pub(super) cut_short: bool,
    pub(super) violation: Option<String>,
    pub(super) trace: Vec<Step>,
    pub(super) tenures: usize,
}

/// Runs a scenario under a schedule. The same scenario and choices give the same run.
pub(super) fn run(scenario: &Arc<Scenario>, schedule: &mut dyn Schedule) -> Ended {
    // The pauses of pollers are drawn from the thread's generator.
    fastrand::seed(0);
    let mut run = Run::begin(scenario);
    let mut steps = Vec::new();
    let mut cut_short = false;
    run.settle();
    loop {
        if let Some((step, checked_before)) = schedule.known() {
            run.checked = !checked_before;
            run.perform(step);
            continue;
        }
        run.checked = true;
        checks::at_every_step(&run);
        if run.board.lock().violation.is_some() {
            break;
        }
        steps.clear();
        run.regular_steps(&mut steps);
        let faults_from = steps.len();
        if run.is_at_rest(&steps) {
            checks::at_rest(&run);
            if run.board.lock().violation.is_some() {
                break;
            }
        }
        if faults_from == 0 {
            checks::at_the_end(&run);
            break;
        }
        if run.trace.len() > TOO_MANY_STEPS {
            run.board.lock().complain(|| "it goes on and on".to_owned());
            break;
        }
        run.faults(&mut steps);
        let Some(chosen) = schedule.choose(&run, &steps, faults_from) else {
            cut_short = true;
            break;
        };
        run.perform(steps[chosen]);
    }
    let mut board = run.board.lock();
    let (violation, tenures) = (board.violation.take(), board.tenures);
    drop(board);
    let trace = std::mem::take(&mut run.trace);
    let clients: Vec<_> = run.clients.iter().map(|it| Arc::downgrade(it.inner())).collect();
    drop(run);
    let left = clients.iter().filter(|client| client.strong_count() > 0).count();
    let is_left = || (left > 0).then(|| format!("{left} clients are left when all is dropped"));
    Ended { cut_short, violation: violation.or_else(is_left), trace, tenures }
}

impl Run {
    fn begin(scenario: &Arc<Scenario>) -> Run {
        let mut world = World::new(scenario.clients, scenario.lag, scenario.server_id);
        world.limits = (scenario.limit, scenario.limit);
        if let Some(next) = scenario.directory {
            let container = New::plain(Kind::Container, b"");
            world.leader.commit(vec![container.at("/locks")]);
            for lock in scenario.locks().iter().filter(|_| scenario.strategy == Strategy::Queue) {
                world.leader.commit(vec![container.at(lock)]);
                if scenario.reduced && scenario.is_mixed() {
                    world.set_limit(scenario.limit, lock);
                }
                world.leader.commit(vec![Change::Number { path: (*lock).to_owned(), next }]);
            }
        }
        let posts = scenario.contenders.iter();
        let posts = posts.map(Post::of);
        let board = Board { posts: posts.collect(), ..Board::default() };
        let (world, board) = (Arc::new(Mutex::new(world)), Arc::new(Mutex::new(board)));
        let machines: Vec<_> =
            (0..scenario.clients).map(|client| ClientMachine::new(&world, client)).collect();
        let mut tasks = Tasks::default();
        let mut clients = Vec::new();
        for (number, machine) in machines.iter().enumerate() {
            clients.push(machine.run(|| connect(scenario)));
            let session = machine.take_driven().unwrap_or_else(|| panic!("a session is driven"));
            tasks.add(number, session);
        }
        let mut run = Run {
            world,
            board,
            machines,
            clients,
            tasks,
            faults_left: scenario.faults,
            touched: vec![false; scenario.clients],
            checked: true,
            scenario: Arc::clone(scenario),
            trace: Vec::new(),
        };
        run.connect_all();
        for (number, contender) in scenario.contenders.iter().enumerate() {
            let client = run.clients[contender.client].clone();
            for lock in contender.locks {
                let memory = client.inner().registry.of::<PathMemory>(lock);
                memory.set_contended(scenario.contended);
            }
            let (world, board) = (Arc::clone(&run.world), Arc::clone(&run.board));
            let acquires = contend(client, world, board, number, Arc::clone(scenario));
            run.tasks.add(contender.client, Box::pin(acquires));
        }
        run
    }

    /// Until all clients trust their sessions, before anything else happens.
    fn connect_all(&mut self) {
        for client in 0..self.clients.len() {
            self.machines[client].clone().run(|| {
                self.tasks.run(client);
                act(&self.world, |world| world.connect(client));
                while !self.is_settled(client) {
                    self.tasks.run(client);
                    act(&self.world, |world| {
                        world.apply(client, true);
                        world.deliver(client);
                    });
                }
                self.tasks.run(client);
            });
        }
    }

    /// Whether the client has no need of time: its session is trusted, and nothing is to be done.
    /// Its machine's code.
    fn is_settled(&self, client: usize) -> bool {
        self.clients[client].inner().is_settled()
    }

    fn regular_steps(&self, steps: &mut Vec<Step>) {
        let reduced = self.scenario.reduced;
        {
            let world = self.world.lock();
            let runs = |client: usize| world.clients[client].is_running();
            if !reduced {
                let woken = self.tasks.woken().filter(|(_, client)| runs(*client));
                steps.extend(woken.map(|(task, _)| Step::Run(task)));
            }
            world.regular_steps(reduced, steps);
        }
        for client in 0..self.clients.len() {
            if self.may_pass(client) {
                steps.push(Step::Pass(client));
            }
        }
        // A client that polls always has a next step.
        let is_polled = self.trace.len() > TOO_MANY_STEPS / 2;
        if self.scenario.holds_long && !steps.is_empty() && !is_polled {
            return;
        }
        let (world, board) = (self.world.lock(), self.board.lock());
        for (number, post) in board.posts.iter().enumerate() {
            if board.may_release(number) && world.clients[post.client].is_running() {
                steps.push(Step::Release(number));
            }
        }
        if reduced {
            steps.retain(|step| self.is_first_of_its_kind(&world, *step));
        }
    }

    /// Whether a client's clock may pass now: not for ever where that changes nothing, and not ahead of
    /// a healthy connection.
    fn may_pass(&self, number: usize) -> bool {
        let machine = &self.machines[number];
        let (waits, settled) = machine.run(|| (self.waits_for(number), self.is_settled(number)));
        let next = machine.next();
        let world = self.world.lock();
        let client = &world.clients[number];
        if client.dead || client.listener.is_none() {
            return false;
        }
        if client.frozen {
            let is_for_nothing = client.is_overdue() && client.can_recover();
            return !(self.scenario.reduced || is_for_nothing);
        }
        let passes = world.passes_without_news(number);
        let is_pending = client.is_served() || client.hears();
        if self.scenario.reduced {
            let is_up = client.connection == Connection::Up || client.over;
            return waits.is_some() && passes < PASSES_THAT_MATTER
                || !settled && is_up && !is_pending && passes < PASSES_TO_SETTLE;
        }
        let is_idle = waits.is_none() && settled && client.can_recover();
        let wanted = !is_idle || passes < IDLE_PASSES;
        let oldest = client.requests().map(|request| request.submitted).min();
        let is_ahead =
            next.zip(oldest).is_some_and(|(next, oldest)| next > oldest + SESSION_TIMEOUT / 4);
        // Where nothing goes wrong, nothing is slow either: guards are not lost.
        let is_behind = is_pending || self.tasks.woken().any(|(_, of)| of == number);
        let is_ahead = is_pending && is_ahead || self.scenario.faults == 0 && is_behind;
        wanted && !(client.is_well_connected() && is_ahead)
    }

    /// When the next of those may go on who wait on a client: of all but what drives its session; in a
    /// reduced scenario its contender alone, as what watches over held claims changes nothing there.
    pub(super) fn waits_for(&self, client: usize) -> Option<Duration> {
        let reduced = self.scenario.reduced;
        let task = if reduced { self.clients.len() + client } else { client };
        self.machines[client].next_by(&self.tasks.waker(task), reduced)
    }

    /// Whether a step is not the same, but for the numbers, as one of another client: of those to
    /// whom nothing has happened and who do the same, one stands for all.
    fn is_first_of_its_kind(&self, world: &World, step: Step) -> bool {
        let Some(client) = world.client_of(step).filter(|client| !self.touched[*client]) else {
            return true;
        };
        let wants = |client: usize| {
            let contender = &self.scenario.contenders[client];
            (contender.locks, &contender.acquires, contender.share, &contender.becomes)
        };
        !(0..client).any(|other| !self.touched[other] && wants(other) == wants(client))
    }

    fn faults(&self, steps: &mut Vec<Step>) {
        if self.faults_left == 0 {
            return;
        }
        let from = steps.len();
        let world = self.world.lock();
        let in_queue = self.scenario.strategy == Strategy::Queue;
        world.faults(self.scenario.reduced, LOCK, in_queue.then_some(LOCK), steps);
        for (number, post) in self.board.lock().posts.iter().enumerate() {
            if post.acquires.is_some() && world.clients[post.client].is_running() {
                steps.push(Step::Cancel(number));
            }
        }
        let mut at = 0;
        steps.retain(|step| {
            at += 1;
            let kind = Fault::of(*step);
            let wanted = kind.is_some_and(|kind| self.scenario.kinds.contains(&kind));
            let first = !self.scenario.reduced || self.is_first_of_its_kind(&world, *step);
            at <= from || wanted && first
        });
    }

    fn perform(&mut self, step: Step) {
        self.trace.push(step);
        if Fault::of(step).is_some() {
            self.faults_left -= 1;
        }
        if let Some(client) = self.world.lock().client_of(step) {
            // In a reduced scenario contenders and clients have the same numbers.
            if let Some(touched) = self.touched.get_mut(client) {
                *touched = true;
            }
        }
        self.pass(step);
        match step {
            Step::Run(task) => self.run_task(task),
            Step::Release(number) => {
                let client = self.board.lock().posts[number].client;
                note(&self.world, client, (1, number));
                self.board.lock().tell_to_release(number);
            }
            Step::Cancel(number) => {
                let client = self.board.lock().posts[number].client;
                note(&self.world, client, (2, number));
                self.board.lock().tell_to_cancel(number);
            }
            step => self.happen(step),
        }
        if let Step::Kill(client) = step {
            self.machines[client].clone().run(|| self.tasks.remove_all_of(client));
        }
        self.settle();
    }

    /// Something happens in the world, and to a client's code perhaps.
    fn happen(&self, step: Step) {
        let client = self.world.lock().client_of(step);
        let in_queue = self.scenario.strategy == Strategy::Queue;
        let happens = || {
            act(&self.world, |world| {
                if let Step::Deliver(client) = step {
                    let alone = self.tasks.of(client) == 2;
                    let (to, inner) = (&mut world.clients[client], self.clients[client].inner());
                    to.is_alone = alone && inner.duties().are_done();
                    let fired = to.next_event().map(|event| event.path.as_str());
                    to.awaits_event = fired.is_some_and(|path| inner.waits_for_event(path));
                }
                world.perform(step, self.scenario.reduced, (LOCK, in_queue));
            });
        };
        match client.and_then(|client| self.machines.get(client)) {
            Some(machine) => machine.run(happens),
            None => happens(),
        }
        if let Step::Thaw(client) = step {
            self.machines[client].run(|| self.machines[client].wake_due());
        }
    }

    /// Lets a client's clock pass as far as a step wants.
    fn pass(&self, step: Step) {
        let reduced = self.scenario.reduced;
        let clock = self.world.lock().clock_after(step, reduced);
        let (client, clock) = match (clock, step) {
            (Some(clock), _) => clock,
            (None, Step::Pass(client)) => {
                let machine = &self.machines[client];
                // What drives a session does nothing new by itself while all is well.
                let waits = self.waits_for(client).filter(|_| reduced);
                match waits.or_else(|| machine.next()) {
                    Some(clock) => (client, clock),
                    None => return,
                }
            }
            _ => return,
        };
        self.world.lock().pass(client, clock);
        let clock = self.world.lock().clients[client].clock;
        self.machines[client].run(|| {
            self.machines[client].set_clock(clock);
            self.machines[client].wake_due();
        });
    }

    fn run_task(&mut self, task: usize) {
        let Some(client) = self.tasks.client(task) else { return };
        self.machines[client].clone().run(|| self.tasks.run(task));
    }

    /// Whether nothing happens any more unless somebody releases, or makes it happen.
    fn is_at_rest(&self, steps: &[Step]) -> bool {
        !steps.is_empty() && steps.iter().all(|step| matches!(step, Step::Release(_)))
    }

    /// In a reduced scenario, lets everything happen that only one client sees.
    fn settle(&mut self) {
        while self.scenario.reduced {
            let woken = {
                let world = self.world.lock();
                let mut woken = self.tasks.woken();
                woken.find(|(_, client)| world.clients[*client].is_running())
            };
            if let Some((task, _)) = woken {
                self.run_task(task);
                if self.checked {
                    checks::at_every_step(self);
                }
                continue;
            }
            let Some(step) = self.unseen() else { return };
            self.happen(step);
        }
    }

    /// What only one client sees, if there is such a thing.
    fn unseen(&self) -> Option<Step> {
        let world = self.world.lock();
        world.clients.iter().enumerate().find_map(|(number, client)| {
            if client.hears() {
                return Some(Step::Deliver(number));
            }
            let runs = client.is_running();
            if runs && client.connection == Connection::Broken {
                return Some(Step::Notice(number));
            }
            if runs && client.is_new() {
                return Some(Step::Connect(number));
            }
            let is_heartbeat = client.uplink.front().is_some_and(Request::is_heartbeat);
            (is_heartbeat && client.is_served()).then_some(Step::Apply(number))
        })
    }

    /// Two runs with the same digest can go on in the same ways.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.world.lock().digest(&mut digest);
        let board = self.board.lock();
        (&board.largest, self.faults_left).hash(&mut digest);
        digest.finish()
    }
}

impl Drop for Run {
    /// Nothing of the world may hold on to the world, and nothing happens in it any more.
    fn drop(&mut self) {
        let clients = std::mem::take(&mut self.clients);
        for (number, client) in clients.into_iter().enumerate() {
            let machine = Rc::clone(&self.machines[number]);
            machine.run(|| {
                act(&self.world, |world| world.kill(number));
                self.tasks.remove_all_of(number);
                for post in self.board.lock().posts.iter_mut().filter(|it| it.client == number) {
                    post.tenures.clear();
                }
                drop(client);
            });
        }
    }
}

fn connect(scenario: &Scenario) -> Client {
    let options = ClientOptions::new()
        .session_timeout(SESSION_TIMEOUT)
        .operation_timeout(scenario.operation_timeout)
        .announced_releases(scenario.announced)
        .shortcuts(scenario.shortcuts);
    options.start("simulated:2181").unwrap_or_else(|error| panic!("{error}"))
}
