//! One run of an operation, with a fault at one of its steps, or with a second one after it.

use std::fmt;

use crate::fault::Strike;
use crate::operation::Operation;
use crate::recipe::Recipe;

/// An operation of a recipe, and the faults that it meets, in their order.
#[derive(Clone)]
pub struct Case {
    pub recipe: &'static Recipe,
    pub operation: &'static Operation,
    pub strikes: Vec<Strike>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.recipe.name, self.operation.name)?;
        self.strikes.iter().try_for_each(|strike| write!(f, "/{strike}"))
    }
}

impl Case {
    /// The same, with one fault more.
    pub fn and(&self, strike: Strike) -> Case {
        let mut case = self.clone();
        case.strikes.push(strike);
        case
    }

    pub fn restarts_the_server(&self) -> bool {
        self.strikes.iter().any(|strike| strike.fault.restarts_the_server())
    }

    /// Whether it waits most of the time, for a session to time out.
    pub fn is_slow(&self) -> bool {
        self.strikes.iter().any(|strike| strike.fault.has_short_sessions())
    }

    /// Its row in the table: of two faults, the second.
    pub fn row(&self) -> String {
        match self.strikes.as_slice() {
            [] => "undisturbed".to_owned(),
            [only] => only.fault.to_string(),
            [.., last] => format!("... {}", last.fault),
        }
    }
}
