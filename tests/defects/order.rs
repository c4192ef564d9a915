//! Who is first: not whose random name sorts first, nor whose session is older, nor another lock's holder.

use std::thread;
use std::time::Duration;

use test_support::{Bench, TIMEOUT, acquire_in_background, eventually, session_id};
use zklock_testing::Rule;
use zklock_testing::wire::Op;

use crate::seeds::c_recipe::{Order, RecipeMutex};
use crate::seeds::curator_locks::Optimised;
use crate::seeds::peers::wait_or_begin_anew;
use crate::seeds::timed::TimedLock;

#[test]
fn a_newcomer_with_a_smaller_uuid_does_not_go_before_the_holder() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let seed = |zk, uuid| Optimised { zk, node: bench.path.clone(), uuid };
    assert!(seed(&client, "b2fc0d6e-5a4e-4e0a-9a3c-6f1e7c1f3d55").try_acquire().unwrap());
    assert!(seed(&other, "1b4e28ba-2fa1-41d2-883f-0016d3cca427").try_acquire().unwrap());
    assert_eq!(bench.children().len(), 2, "both hold");

    bench.next();
    // Names of that kind are in our line too: by their numbers.
    let mut holder = bench.stranger("_c_b2fc0d6e-5a4e-4e0a-9a3c-6f1e7c1f3d55-lock-");
    let waiting = acquire_in_background(&bench.lock(&client));
    eventually("it waits", || bench.watched_by(session_id(&client)) == [holder.path.clone()]);
    let _newcomer = bench.stranger("_c_1b4e28ba-2fa1-41d2-883f-0016d3cca427-lock-");
    holder.leave();
    let guard = waiting.join().unwrap().unwrap();
    assert_eq!(bench.lock(&other).holder().wait().unwrap().unwrap().path, &*guard.claim_path());
    assert!(bench.lock(&other).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
}

#[test]
fn an_older_session_does_not_go_before_the_holder() {
    let mut bench = Bench::with_directory();
    let (older, younger) = (bench.direct(), bench.direct());
    assert!(session_id(&older) < session_id(&younger));
    let holder = RecipeMutex::new(&younger, &bench.path, Order::Name);
    let newcomer = RecipeMutex::new(&older, &bench.path, Order::Name);
    holder.lock().unwrap();
    newcomer.lock().unwrap();
    assert!(holder.is_owner() && newcomer.is_owner());

    bench.next();
    let mut holder = bench.stranger(&format!("x-{:016x}-", session_id(&younger)));
    let waiting = acquire_in_background(&bench.lock(&younger));
    eventually("it waits", || bench.watched_by(session_id(&younger)) == [holder.path.clone()]);
    let _newcomer = bench.stranger(&format!("x-{:016x}-", session_id(&older)));
    holder.leave();
    let guard = waiting.join().unwrap().unwrap();
    assert!(bench.lock(&older).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
}

#[test]
fn locks_of_different_names_do_not_exclude_each_other() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let seed = |zk| TimedLock { zk, root: bench.path.clone() };
    assert!(seed(&client).lock("invoices", Duration::ZERO).unwrap());
    assert!(!seed(&other).lock("orders", Duration::ZERO).unwrap(), "it is behind the invoices");

    bench.next();
    let invoices = client.lock(&format!("{}/invoices", bench.path));
    let orders = other.lock(&format!("{}/orders", bench.path));
    // One of them even on the directory of the other two.
    let all = bench.lock(&other);
    let guards = [&invoices, &orders, &all].map(|lock| lock.try_acquire().wait().unwrap());
    assert!(guards.iter().all(Option::is_some));
    assert!(bench.lock(&client).acquire().within(Duration::ZERO).wait().unwrap_err().is_timeout());
    drop(guards);
    all.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_waiter_whose_neighbour_is_gone_keeps_its_place() {
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let mut holder = bench.stranger("lock-");
    let gate = bench.proxy.hold(Rule::request(Op::Exists).path(&holder.path).once());
    thread::scope(|scope| {
        let locking = scope.spawn(|| wait_or_begin_anew(&client, &bench.path).unwrap());
        gate.wait_reached(TIMEOUT).unwrap();
        let later = bench.stranger("lock-");
        holder.leave();
        gate.release();
        assert!(locking.join().unwrap().is_err(), "it waits");
        let children = bench.children();
        assert_eq!(format!("{}/{}", bench.path, children[0]), later.path, "it was overtaken");
    });

    bench.next();
    let mut holder = bench.stranger("lock-");
    let look = Rule::request([Op::GetData, Op::Exists]).path(&holder.path);
    let gate = bench.proxy.hold(look.once());
    let acquiring = acquire_in_background(&bench.lock(&client));
    gate.wait_reached(TIMEOUT).unwrap();
    let later = bench.stranger("lock-");
    holder.leave();
    gate.release();
    let guard = acquiring.join().unwrap().unwrap();
    assert!(bench.exists(&later.path), "it was first, and is");
    guard.release().wait().unwrap();
}
