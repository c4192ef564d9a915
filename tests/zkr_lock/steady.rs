//! Long runs: memory stays what it was.

use crate::scene::{PATH, Scene};

#[test]
fn thousands_of_pairs_of_lock_and_unlock_need_no_more_memory() {
    let mut scene = Scene::on_one_handle("a");
    let pairs = 6_000;
    let mut grows = || -> i64 {
        let said = scene.program.ask(&format!("pairs a {pairs}"));
        said.strip_prefix("grew ").unwrap_or_else(|| panic!("{said}")).parse().unwrap()
    };
    // Half of what the smallest block that there is, 32 bytes, would make in each of the last four fifths. A leak is in
    // every run; what is in flight at the end of a run on a busy machine is not.
    let is_flat = |grew: i64| grew < pairs * 4 / 5 * 16;
    assert!((0..3).any(|_| is_flat(grows())), "the heap grows");
    assert_eq!(scene.claims(), [""; 0]);
    assert_eq!(scene.zk.children(PATH).wait().unwrap().names.len(), 0);
}
