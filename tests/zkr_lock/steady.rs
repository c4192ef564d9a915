//! Long runs: memory stays what it was.

use test_support::scaled;

use crate::scene::{PATH, Scene};

#[test]
fn thousands_of_pairs_of_lock_and_unlock_need_no_more_memory() {
    let mut scene = Scene::on_one_handle("a");
    let pairs = scaled(6_000, 10_000);
    let said = scene.program.ask(&format!("pairs a {pairs}"));
    let grew: i64 = said.strip_prefix("grew ").unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    // Heaps grow by some tens of kilobytes for other reasons. A leak of the smallest block, 32 bytes, in each pair of the last four fifths
    // would be twice as much.
    assert!(grew < pairs * 4 / 5 * 16, "the heap grew by {grew} bytes");
    assert_eq!(scene.claims(), [""; 0]);
    assert_eq!(scene.zk.children(PATH).wait().unwrap().names.len(), 0);
}
