//! The end of an acquire, brought to its mutex and to the program.

use std::ffi::c_int;
use std::sync::Arc;

use super::recipe::Recipe;
use crate::capi::boundary::Failure;
use crate::capi::callbacks::Line;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::Guard;

/// Reports the end of an acquire, also when its task is dropped with the client.
pub(super) struct Report {
    recipe: Arc<Recipe>,
    attempt: u64,
    client: Client,
    line: Arc<Line>,
    due: bool,
}

impl Report {
    /// One that has to be made.
    pub(super) fn due(recipe: &Arc<Recipe>, attempt: u64, client: Client, line: Line) -> Report {
        let (recipe, line) = (Arc::clone(recipe), Arc::new(line));
        Report { recipe, attempt, client, line, due: true }
    }

    /// For what may come after the acquire.
    pub(super) fn again(&self) -> Report {
        let (recipe, line) = (Arc::clone(&self.recipe), Arc::clone(&self.line));
        Report { recipe, attempt: self.attempt, client: self.client.clone(), line, due: false }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The program has given up, and wants to hear no more.
    pub(super) fn cancel(&mut self) {
        self.due = false;
    }

    pub(super) fn make(&mut self, acquired: Result<Guard, Failure>) {
        self.due = false;
        // What else ends an acquire when the handle's session does is but a consequence.
        let acquired =
            acquired.map_err(|failure| self.client.failure().map_or(failure, Failure::from));
        self.recipe.settle(self.attempt, acquired, self);
    }

    /// The lock that was acquired is lost.
    pub(super) fn lost(&self) {
        self.recipe.lose(self.attempt, self);
    }

    /// Runs the completion on the callback thread, unless the program has closed its handle: what
    /// the completion works on may be gone by then.
    pub(super) fn tell_later(&self, rc: c_int) {
        let (recipe, attempt, client) =
            (Arc::clone(&self.recipe), self.attempt, self.client.clone());
        self.line.run(move || {
            if !client.is_let_go() {
                recipe.tell_if_due(attempt, rc);
            }
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.due {
            self.make(Err(Error::new("acquire", "", Code::CLOSING).into()));
        }
    }
}
