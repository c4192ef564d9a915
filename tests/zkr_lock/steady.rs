//! Long runs: memory stays what it was.

use crate::scene::{PATH, Scene};

/// What heaps grow by for other reasons: half of what a leak of the smallest block that there is, 32
/// bytes, in each of the pairs that count would be.
const TOLERANCE: i64 = 8_000 * 16;

#[test]
fn ten_thousand_pairs_of_lock_and_unlock_need_no_more_memory() {
    let mut scene = Scene::on_one_handle("a");
    let said = scene.program.ask("pairs a 10000");
    let grew: i64 = said.strip_prefix("grew ").unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(grew < TOLERANCE, "the heap grew by {grew} bytes");
    assert_eq!(scene.claims(), [""; 0]);
    assert_eq!(scene.zk.children(PATH).wait().unwrap().names.len(), 0);
}
