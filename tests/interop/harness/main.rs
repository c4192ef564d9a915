//! Locks of zklock and of other libraries on one path: `make interop` plays all of them, and says what they do to each
//! other.

#![deny(unsafe_code)]

mod count;
mod faults;
#[allow(dead_code)]
#[path = "../../../crates/zklock-cli/src/look/kinds.rs"]
mod kinds;
mod library;
mod scene;

use std::thread;

use count::{Count, count};
use library::Library;
use scene::{Acquire, Found, acquire_behind, alternate};

/// How many acquisitions in all, over the pairs and all together.
fn rounds() -> u64 {
    let rounds = std::env::var("ZKLOCK_ROUNDS");
    rounds.map_or(400, |rounds| rounds.parse().expect("ZKLOCK_ROUNDS is a number"))
}

/// Each library holds while ours waits, waits while ours holds, and is killed while it holds; so is ours. Claims are
/// known by their names.
#[test]
fn each_waits_for_ours_if_it_knows_their_names_and_ours_wait_for_each() {
    let libraries = library::chosen();
    thread::scope(|scope| {
        let playing: Vec<_> = libraries
            .iter()
            .map(|it| {
                let first = scope.spawn(|| alternate(it.ours(), *it));
                (it, first, scope.spawn(|| alternate(*it, it.ours())))
            })
            .collect();
        println!(
            "\n{:40} version   ours  while ours is held",
            "while it is held, and after a kill -9"
        );
        for (library, ours_first, theirs_first) in playing {
            let Found { version, first: ours, second: theirs } = ours_first.join().unwrap();
            let mirrored = theirs_first.join().unwrap();
            assert_eq!((mirrored.second, mirrored.first), (ours, theirs), "{}", library.name);
            let [we, they] = [ours, theirs].map(|it| format!("{it:?}").to_lowercase());
            println!("{:40} {version:8}  {we}  {they}", library.name);
            assert_eq!(ours == Acquire::Waits, library.ours_wait, "{}", library.name);
            assert_eq!(theirs == Acquire::Waits, library.waits_for_ours, "{}", library.name);
        }
    });
}

/// What is no ephemeral znode is data to ours, which may lie beside claims: it would never go.
#[test]
fn kazoos_claims_that_are_not_ephemeral_are_passed_over() {
    let kazoo = library::KAZOO_WITHOUT_SESSION;
    if kazoo.is_chosen() {
        let found = acquire_behind(kazoo, kazoo.ours());
        println!("\nwhile {} is held, ours: {found:?}", kazoo.name);
        assert_eq!(found, Acquire::Holds);
    }
}

/// What the others do to each other is theirs, but for those that ours can stand in one line with, all at once.
#[test]
fn those_that_are_in_one_line_wait_for_each_other() {
    let mut libraries = library::chosen();
    libraries.retain(Library::is_mutex);
    println!();
    for holder in &libraries {
        let found: Vec<Acquire> = thread::scope(|scope| {
            let behind: Vec<_> =
                libraries.iter().map(|it| scope.spawn(|| acquire_behind(*holder, *it))).collect();
            behind.into_iter().map(|it| it.join().unwrap()).collect()
        });
        for (waiter, found) in libraries.iter().zip(found) {
            println!("while {} is held, {}: {found:?}", holder.name, waiter.name);
            let in_one_line = holder.in_one_line && waiter.in_one_line;
            assert!(found == Acquire::Waits || !in_one_line, "{}: {}", holder.name, waiter.name);
        }
    }
}

/// Nothing but the lock keeps them from writing over each other's increments.
#[test]
fn no_increment_is_lost_where_each_waits_for_the_other() {
    let mut libraries = library::chosen();
    libraries.retain(Library::is_exclusive);
    let line: Vec<Library> = libraries.iter().copied().filter(|it| it.in_one_line).collect();
    let each = rounds() / (libraries.len() as u64 + 2);
    println!("\n{:40} acquisitions   lost  taken over  per s", "");
    for library in &libraries {
        let found = report(library.name, &[vec![library.ours(), *library]], each);
        assert!(found.lost == 0 || !library.waits_for_ours, "{}", library.name);
    }
    if let [first, _, ..] = &line[..] {
        let all: Vec<Library> = [first.ours()].into_iter().chain(line.iter().copied()).collect();
        let names: Vec<&str> = line.iter().map(|it| it.name).collect();
        assert_eq!(report(&names.join(", "), &[all], each).lost, 0);
    }
    // All of them at once, each with those that it excludes, and with ours.
    libraries.retain(Library::is_beside_all);
    let (line, others): (Vec<_>, _) = libraries.into_iter().partition(Library::is_of_curators_line);
    let groups = [line].into_iter().chain(others.into_iter().map(|it| vec![it]));
    let groups: Vec<Vec<Library>> = groups
        .filter(|group| !group.is_empty())
        .map(|group| [group[0].ours()].into_iter().chain(group).collect())
        .collect();
    if groups.len() > 1 {
        assert_eq!(report("all of these; ours for all", &groups, each).lost, 0);
    }
}

/// It fails rather than hold beside ours.
#[test]
fn go_zookeeper_does_not_hold_beside_a_lock_for_all() {
    let go = library::GO_BESIDE_ALL;
    if go.is_chosen() {
        let found = acquire_behind(go.ours(), go);
        println!("\nwhile ours for all is held, go-zookeeper: {found:?}");
        assert_ne!(found, Acquire::Holds);
        assert_eq!(acquire_behind(go, go.ours()), Acquire::Waits);
    }
}

fn report(name: &str, groups: &[Vec<Library>], acquisitions: u64) -> Count {
    let found = count(groups, acquisitions);
    let Count { acquisitions, lost, taken_over, took } = found;
    let rate = acquisitions as f64 / took.as_secs_f64();
    println!("{name:40} {acquisitions:12} {lost:6} {taken_over:11} {rate:6.0}");
    // Programs of one library after those of the other have shown nothing.
    let libraries = groups.iter().map(Vec::len).sum::<usize>() as u64;
    assert!(taken_over > libraries, "{name}: {taken_over} taken over");
    found
}

/// What the same faults do to each of the chosen ones that are plain locks, one after the other, and to ours.
#[test]
fn faults_cost_ours_nothing_and_others_what_is_shown() {
    let is_plain = |it: &Library| it.is_mutex() && it.waits_for_ours;
    let mut libraries = library::chosen();
    libraries.retain(is_plain);
    libraries.insert(0, library::OURS);
    let found: Vec<Vec<&str>> = thread::scope(|scope| {
        let playing: Vec<_> = libraries
            .iter()
            .map(|it| scope.spawn(|| faults::FAULTS.map(|fault| (fault.play)(*it)).to_vec()))
            .collect();
        playing.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let names: Vec<&str> = libraries.iter().map(|it| it.name).collect();
    println!("\n| fault | {} |\n|---{}|", names.join(" | "), "|---".repeat(names.len()));
    for (row, fault) in faults::FAULTS.iter().enumerate() {
        let outcomes: Vec<&str> = found.iter().map(|of| of[row]).collect();
        println!("| {} | {} |", fault.name, outcomes.join(" | "));
        assert_eq!(outcomes[0], fault.ours, "{}", fault.name);
    }
}
