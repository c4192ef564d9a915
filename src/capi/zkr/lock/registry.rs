//! The way from a struct to what stands behind it and its copies.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::layout::zkr_lock_mutex;
use super::recipe::Recipe;
use crate::sync::per_process;

per_process! {
    /// The locks behind the structs, by number.
    static RECIPES: Mutex<Recipes> = Mutex::default();
}

#[derive(Default)]
struct Recipes {
    latest: u64,
    by_number: HashMap<u64, Arc<Recipe>>,
}

/// The lock behind the struct, if it was ever locked.
pub(super) fn find(mutex: &zkr_lock_mutex) -> Option<Arc<Recipe>> {
    let recipes = RECIPES.lock();
    recipes.by_number.get(&mutex.number()).cloned()
}

/// The lock behind the struct, made if there is none.
pub(super) fn find_or_make(mutex: &zkr_lock_mutex) -> Arc<Recipe> {
    // The number is written under this lock only.
    let mut recipes = RECIPES.lock();
    if let Some(recipe) = recipes.by_number.get(&mutex.number()) {
        return Arc::clone(recipe);
    }
    recipes.latest += 1;
    let number = mutex.set_number(recipes.latest);
    Arc::clone(recipes.by_number.entry(number).or_default())
}

/// Frees what the table does not need now.
pub(in crate::capi) fn shrink() {
    RECIPES.lock().by_number.shrink_to_fit();
}

/// Gives what stood behind the struct and its copies, and stands there no more.
pub(super) fn remove(mutex: &zkr_lock_mutex) -> Option<Arc<Recipe>> {
    RECIPES.lock().by_number.remove(&mutex.number())
}
