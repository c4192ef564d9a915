//! Repeats a run and tells what happens in it.

use std::sync::Arc;

use super::client::Message;
use super::effort;
use super::request::Value;
use super::run::{Ended, Run, Schedule, run};
use super::scenario::Scenario;
use super::schedule::{Drawn, Given};
use super::steps::Step;

/// Tells of every step that another schedule chooses.
struct Told<S> {
    schedule: S,
    lines: Vec<String>,
}

impl<S: Schedule> Schedule for Told<S> {
    fn choose(&mut self, run: &Run, steps: &[Step], faults_from: usize) -> Option<usize> {
        let chosen = self.schedule.choose(run, steps, faults_from)?;
        let world = run.world.lock();
        let what = match steps[chosen] {
            Step::Apply(client) => match world.clients[client].uplink.front() {
                Some(request) => format!(": {} {}", request.op.name(), request.path),
                None => String::new(),
            },
            Step::Deliver(client) => match world.clients[client].downlink.front() {
                Some(message) => format!(": {}", words(message)),
                None => String::new(),
            },
            _ => String::new(),
        };
        let mut holders = String::new();
        for (number, post) in run.board.lock().posts.iter().enumerate() {
            for tenure in &post.tenures {
                holders.push_str(&format!(" {number} (claim {})", tenure.number()));
            }
        }
        let line = match holders.as_str() {
            "" => format!("{:?}{what}", steps[chosen]),
            holders => format!("{:?}{what}; in tenure:{holders}", steps[chosen]),
        };
        self.lines.push(format!("{:4}  {line}", self.lines.len()));
        Some(chosen)
    }
}

/// A message to a client, in words.
fn words(message: &Message) -> String {
    let (request, answer) = match message {
        Message::Event(event) => return format!("{:?} {}", event.kind, event.path),
        Message::Answer { request, answer, .. } => (request, answer),
    };
    let answer = match answer {
        Ok(Value::Created(path, stat)) => format!("{path}, by {}", stat.czxid),
        Ok(Value::CreatedAll(created)) => format!("{created:?}"),
        Ok(Value::Children(names, _)) => names.join(" "),
        Ok(Value::Data(_, stat) | Value::Stat(stat)) => format!("made by {}", stat.czxid),
        Ok(Value::Done) => "done".to_owned(),
        Err(code) => code.to_string(),
    };
    let for_whom = if request.is_awaited() { "" } else { ", for nobody" };
    format!("{} {}: {answer}{for_whom}", request.op.name(), request.path)
}

/// Repeats a run; gives its story and how it ended.
fn tell(scenario: Scenario, schedule: impl Schedule) -> (String, Ended) {
    let mut told = Told { schedule, lines: vec![format!("{scenario:?}")] };
    let ended = run(&Arc::new(scenario), &mut told);
    (told.lines.join("\n"), ended)
}

/// What to print when a seed's run fails.
pub(super) fn report_seed(seed: u64, violation: &str) -> String {
    let (story, _) = tell(Scenario::from_seed(seed), Drawn::new(seed));
    format!(
        "{story}\n{violation}\n\
         to repeat it: ZKLOCK_SEED={seed} cargo test --lib simulation::replay -- --nocapture"
    )
}

/// What to print when a schedule of a scenario fails.
pub(super) fn report_choices(name: &str, choices: &[usize], violation: &str) -> String {
    let (story, _) = tell(Scenario::named(name), Given(choices.iter()));
    let choices: Vec<String> = choices.iter().map(usize::to_string).collect();
    let choices = choices.join(",");
    format!(
        "{story}\n{violation}\n\
         to repeat it: ZKLOCK_SCENARIO={name} ZKLOCK_CHOICES={choices} \
         cargo test --lib simulation::replay -- --nocapture"
    )
}

/// Repeats what the environment names; without that, shows with one seed that a run repeats.
#[test]
fn a_run_repeats_step_by_step() {
    let repeat = || match effort::choices() {
        Some((name, choices)) => tell(Scenario::named(&name), Given(choices.iter())),
        None => {
            let seed = effort::seed().unwrap_or(7);
            tell(Scenario::from_seed(seed), Drawn::new(seed))
        }
    };
    let (first, second) = (repeat(), repeat());
    println!("{}", first.0);
    // The data of claims carries a uuid, which is nobody's choice.
    assert_eq!(first.1.trace, second.1.trace);
    assert_eq!(first.1.violation, second.1.violation);
    assert_eq!(first.1.violation, None);
}
