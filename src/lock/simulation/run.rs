//! One run of a scenario: what can happen, one thing after the other, until nothing can.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use super::checks;
use super::client::Connection;
use super::contender::{Board, Post, SharedBoard, contend, note};
use super::digest::Digest;
use super::scenario::{Fault, LOCK, Scenario};
use super::server::{Change, Kind};
use super::service::Shared;
use super::steps::Step;
use super::tasks::Tasks;
use super::world::World;
use crate::lock::Strategy;

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
    Ended { cut_short, violation, trace: std::mem::take(&mut run.trace), tenures }
}

impl Run {
    fn begin(scenario: &Arc<Scenario>) -> Run {
        let mut world = World::new(scenario.clients, scenario.lag, scenario.server_id);
        (world.careless, world.proves_late) = (scenario.careless, scenario.proves_late);
        if world.proves_late {
            world.clients.iter_mut().for_each(|client| client.proven = false);
        }
        if let Some(next) = scenario.directory {
            let container = |path: &str| Change::Create {
                path: path.to_owned(),
                kind: Kind::Container,
                data: Arc::default(),
            };
            world.leader.commit(vec![container("/locks")]);
            if scenario.strategy == Strategy::Queue {
                world.leader.commit(vec![container(LOCK)]);
                world.leader.commit(vec![Change::Number { path: LOCK.to_owned(), next }]);
            }
            for client in 0..scenario.clients {
                world.catch_up(client, usize::MAX);
            }
        }
        let posts = scenario.contenders.iter();
        let posts = posts.map(|contender| Post::on(contender.client));
        let board = Board { posts: posts.collect(), ..Board::default() };
        let (world, board) = (Arc::new(Mutex::new(world)), Arc::new(Mutex::new(board)));
        let mut tasks = Tasks::default();
        // Those of one client share what it knows.
        let memories: Vec<Arc<_>> = (0..scenario.clients).map(|_| Arc::default()).collect();
        for (number, contender) in scenario.contenders.iter().enumerate() {
            let (world, board) = (Arc::clone(&world), Arc::clone(&board));
            let memory = Arc::clone(&memories[contender.client]);
            let errands = contend(world, board, memory, number, Arc::clone(scenario));
            tasks.add(contender.client, Box::pin(errands));
        }
        let scenario = Arc::clone(scenario);
        Run {
            world,
            board,
            tasks,
            faults_left: scenario.faults,
            touched: vec![false; scenario.clients],
            checked: true,
            scenario,
            trace: Vec::new(),
        }
    }

    fn regular_steps(&self, steps: &mut Vec<Step>) {
        let reduced = self.scenario.reduced;
        let world = self.world.lock();
        let runs = |client: usize| world.clients[client].is_running();
        if !reduced {
            let woken = self.tasks.woken().filter(|(_, client)| runs(*client));
            steps.extend(woken.map(|(task, _)| Step::Run(task)));
        }
        world.regular_steps(reduced, steps);
        if self.scenario.holds_long && !steps.is_empty() {
            return;
        }
        let board = self.board.lock();
        for (number, post) in board.posts.iter().enumerate() {
            if board.may_release(number) && runs(post.client) {
                steps.push(Step::Release(number));
            }
        }
        if reduced {
            steps.retain(|step| self.is_first_of_its_kind(&world, *step));
        }
    }

    /// Whether a step is not the same, but for the numbers, as one of another client: of those to
    /// whom nothing has happened and who do the same, one stands for all.
    fn is_first_of_its_kind(&self, world: &World, step: Step) -> bool {
        let Some(client) = world.client_of(step).filter(|client| !self.touched[*client]) else {
            return true;
        };
        let errands = |client: usize| &self.scenario.contenders[client].errands;
        !(0..client).any(|other| !self.touched[other] && errands(other) == errands(client))
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
        match step {
            Step::Run(task) => self.tasks.run(task),
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
            Step::Deliver(client) => self.deliver(client),
            step => {
                let in_queue = self.scenario.strategy == Strategy::Queue;
                self.world.lock().perform(step, self.scenario.reduced, (LOCK, in_queue));
            }
        }
        if let Step::Kill(client) = step {
            self.tasks.remove_all_of(client);
        }
        self.settle();
    }

    /// A client hears the next thing.
    fn deliver(&self, client: usize) {
        let mut world = self.world.lock();
        world.clients[client].is_alone = self.tasks.of(client) == 1;
        world.deliver(client);
    }

    /// Whether nothing happens any more unless somebody releases, or makes it happen.
    fn is_at_rest(&self, steps: &[Step]) -> bool {
        !steps.is_empty() && steps.iter().all(|step| matches!(step, Step::Release(_)))
    }

    /// Lets background tasks begin; in a reduced scenario, lets everything happen that only one
    /// client sees.
    fn settle(&mut self) {
        loop {
            let spawned = std::mem::take(&mut self.world.lock().spawned);
            for (client, task) in spawned {
                if !self.world.lock().clients[client].dead {
                    self.tasks.add(client, task);
                }
            }
            if !self.scenario.reduced {
                return;
            }
            let mut world = self.world.lock();
            let mut woken = self.tasks.woken();
            let task = woken.find(|(_, client)| world.clients[*client].is_running());
            drop(woken);
            if let Some((task, _)) = task {
                drop(world);
                self.tasks.run(task);
                if self.checked {
                    checks::at_every_step(self);
                }
                continue;
            }
            let mut clients = world.clients.iter();
            if let Some(client) = clients.position(|client| client.hears()) {
                drop(world);
                self.deliver(client);
                continue;
            }
            let mut clients = world.clients.iter();
            let broken = clients
                .position(|client| client.is_running() && client.connection == Connection::Broken);
            match broken {
                Some(client) => world.notice(client),
                None => return,
            }
        }
    }

    /// Two runs with the same digest can go on in the same ways.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        self.world.lock().digest(&mut digest);
        let board = self.board.lock();
        (board.token, self.faults_left).hash(&mut digest);
        digest.finish()
    }
}

impl Drop for Run {
    /// Nothing of the world may hold on to the world.
    fn drop(&mut self) {
        for client in &mut self.world.lock().clients {
            client.dead = true;
        }
        self.tasks = Tasks::default();
        loop {
            let spawned = std::mem::take(&mut self.world.lock().spawned);
            if spawned.is_empty() {
                break;
            }
        }
        for post in &mut self.board.lock().posts {
            post.tenure = None;
        }
    }
}
