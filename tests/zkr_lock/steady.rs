//! Long runs: memory stays what it was.

use crate::scene::{PATH, Scene};

/// What heaps grow by for other reasons. A leak of one name in each pair would be ten times that.
const TOLERANCE: i64 = 32 * 1024;

#[test]
fn ten_thousand_pairs_of_lock_and_unlock_need_no_more_memory() {
    let mut scene = Scene::on_one_handle("a");
    let said = scene.program.ask("pairs a 10000");
    let grew: i64 = said.strip_prefix("grew ").unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(grew < TOLERANCE, "the heap grew by {grew} bytes");
    assert_eq!(scene.claims(), [""; 0]);
    assert_eq!(scene.zk.children(PATH).wait().unwrap().len(), 0);
}
