//! State by path, for as long as a client or a session lives.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::process::Process;

/// How many paths are kept of each kind that nobody uses: twice as many at the most.
const UNUSED: usize = 1024;

/// One value of each type for each path, shared by all who ask for it.
pub(crate) struct Registry {
    known: Mutex<HashMap<TypeId, ByPath>>,
    process: Process,
}

type ByPath = HashMap<Box<str>, Arc<dyn Any + Send + Sync>>;

impl Default for Registry {
    fn default() -> Registry {
        Registry { known: Mutex::default(), process: Process::this() }
    }
}

impl Registry {
    /// The value of the path, made when it is first asked for. Values that are not in use may be dropped.
    pub(crate) fn of<T: Default + Send + Sync + 'static>(&self, path: &str) -> Arc<T> {
        // In a child of its process somebody may have been changing it.
        if !self.process.is_this() {
            return Arc::default();
        }
        let mut known = self.known.lock();
        let known = known.entry(TypeId::of::<T>()).or_default();
        if let Some(Ok(value)) = known.get(path).map(|value| Arc::clone(value).downcast()) {
            return value;
        }
        if known.len() >= UNUSED && known.len().is_power_of_two() {
            known.retain(|_, value| Arc::strong_count(value) > 1);
        }
        let value = Arc::new(T::default());
        known.insert(path.into(), Arc::clone(&value) as _);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_value_of_each_type() {
        let registry = Registry::default();
        let (a, b) = (registry.of::<Mutex<i32>>("/a"), registry.of::<Mutex<i32>>("/b"));
        let other = registry.of::<Mutex<String>>("/a");
        *a.lock() = 7;
        *other.lock() = "x".to_owned();
        assert!(Arc::ptr_eq(&registry.of("/a"), &a) && Arc::ptr_eq(&registry.of("/a"), &other));
        assert_eq!(*b.lock(), 0);
    }

    #[test]
    fn of_what_nobody_uses_a_bounded_number_is_kept_and_of_what_is_used_all() {
        let registry = Registry::default();
        let used: Vec<_> = (0..5_000).map(|n| registry.of::<i32>(&format!("/used/{n}"))).collect();
        for n in 0..20_000 {
            registry.of::<i32>(&format!("/unused/{n}"));
        }
        let kept = registry.known.lock()[&TypeId::of::<i32>()].len();
        assert!(kept >= used.len() && kept < 2 * (used.len() + UNUSED), "{kept}");
        for (n, value) in used.iter().enumerate() {
            assert!(Arc::ptr_eq(&registry.of(&format!("/used/{n}")), value));
        }
    }
}
